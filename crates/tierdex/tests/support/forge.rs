//! Writes files of an index again, with other payloads and valid checksums.

use std::ops::Range;
use tierdex::commit::{FileKind, FileMeta, Manifest};
use tierdex::internal::segment::layout::{identity, parse_file_name};
use tierdex::io::{Disk, Identity, MemDisk, SealedFile, SealedWriter};

/// The payload of a file, with the identity under which it is sealed.
pub fn read_payload(disk: &MemDisk, name: &str) -> (Identity, Vec<u8>) {
    let manifest = Manifest::newest(disk).unwrap().unwrap();
    let identity = match parse_file_name(name) {
        Some((segment, field, kind)) => identity(segment, field, kind),
        None => Identity { kind: FileKind::Manifest as u8, field: 0, segment: manifest },
    };
    let file = SealedFile::open_unsealed(disk, name, identity).unwrap();
    let Range { start, end } = file.payload();
    (identity, file.read(start, (end - start) as usize).unwrap())
}

/// Replaces the payload of a file, and writes its new length and checksum to the manifest.
pub fn forge_file(disk: &MemDisk, name: &str, identity: Identity, payload: &[u8]) {
    disk.remove(name).unwrap();
    let mut file = SealedWriter::create(disk, name, identity).unwrap();
    file.write(payload).unwrap();
    let seal = file.finish().unwrap();
    let Some((number, field, kind)) = parse_file_name(name) else { return };
    let mut manifest = Manifest::read_newest(disk).unwrap().unwrap();
    for segment in &mut manifest.segments {
        let is_named =
            |of: &&mut FileMeta| of.kind == kind && (of.field == field || !kind.has_field_number());
        if segment.id == number {
            segment.meta.files.iter_mut().filter(is_named).for_each(|of| of.seal = seal);
        }
        let numbered = segment.deletes.iter_mut().flat_map(|of| of.layers.iter_mut().chain([&mut of.file]));
        numbered.filter(|of| of.number == number).for_each(|of| of.seal = seal);
    }
    manifest.input_files.iter_mut().filter(|of| of.number == number).for_each(|of| of.seal = seal);
    manifest.prepare(disk, "new").unwrap();
    disk.remove(&Manifest::file_name(manifest.generation)).unwrap();
    manifest.publish(disk, "new").unwrap();
}
