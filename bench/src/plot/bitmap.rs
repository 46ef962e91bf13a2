//! Draws plots into pixels, for PNG files. Text has a font of fixed width that is part of the program, so
//! that no font file is needed.

use crate::{Error, Result};
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle, iso_8859_1::FONT_7X13};
use embedded_graphics::text::{Baseline, Text};
use embedded_graphics::{Drawable, draw_target::DrawTarget, pixelcolor::BinaryColor};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use std::convert::Infallible;

type PixelResult = std::result::Result<(), DrawingErrorKind<Infallible>>;

const LABEL_FONT: MonoFont<'_> = FONT_7X13;

/// An image in memory that plots are drawn into.
pub(super) struct Bitmap<'a> {
    /// Red, green and blue of each pixel, row by row.
    pixels: &'a mut Vec<u8>,
    size: (u32, u32),
}

impl Bitmap<'_> {
    /// A white image of this width and height in `pixels`.
    pub(super) fn new(pixels: &mut Vec<u8>, size: (u32, u32)) -> Bitmap<'_> {
        pixels.clear();
        pixels.resize(3 * size.0 as usize * size.1 as usize, u8::MAX);
        Bitmap { pixels, size }
    }
}

/// Encodes the pixels of a [`Bitmap`] as PNG.
///
/// # Errors
/// If the encoder fails.
pub(super) fn encode_png(pixels: &[u8], size: (u32, u32)) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    written.map_err(Error::failed("cannot encode a plot"))?;
    Ok(bytes)
}

impl DrawingBackend for Bitmap<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> PixelResult {
        Ok(())
    }

    fn present(&mut self) -> PixelResult {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> PixelResult {
        let ((x, y), (width, height)) = (at, self.size);
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return Ok(()) };
        if x < width && y < height {
            let at = 3 * (y as usize * width as usize + x as usize);
            let (red, green, blue) = color.rgb;
            for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip([red, green, blue]) {
                let mixed = f64::from(*pixel) + (f64::from(ink) - f64::from(*pixel)) * color.alpha;
                *pixel = mixed.round() as u8;
            }
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> PixelResult {
        let (width, height) = text_pixels(text);
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -(width as i32) / 2,
            HPos::Right => -(width as i32),
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -(height as i32) / 2,
            VPos::Bottom => -(height as i32),
        };
        let mut ink = TextPixels { points: Vec::new(), size: Size::new(width, height) };
        let font = MonoTextStyle::new(&LABEL_FONT, BinaryColor::On);
        let Ok(_) = Text::with_baseline(text, Point::zero(), font, Baseline::Top).draw(&mut ink);
        for point in ink.points {
            let (x, y) = style.transform().transform(point.x + left, point.y + top);
            self.draw_pixel((at.0 + x, at.1 + y), style.color())?;
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> std::result::Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok(text_pixels(text))
    }
}

/// Width and height of a line of text in pixels.
fn text_pixels(text: &str) -> (u32, u32) {
    let Size { width, height } = LABEL_FONT.character_size;
    (width * text.chars().count() as u32, height)
}

/// Collects the pixels that the font sets for a text.
struct TextPixels {
    points: Vec<Point>,
    size: Size,
}

impl OriginDimensions for TextPixels {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for TextPixels {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> std::result::Result<(), Infallible>
    where
        I: IntoIterator<Item = embedded_graphics::Pixel<BinaryColor>>,
    {
        let inked = pixels.into_iter().filter(|pixel| pixel.1 == BinaryColor::On);
        self.points.extend(inked.map(|pixel| pixel.0));
        Ok(())
    }
}
