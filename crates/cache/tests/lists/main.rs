//! What is read through the cache is what stands in the files, however small the cache and whatever goes wrong; and in
//! the end nothing is held and nothing is lost.

mod answers;
mod begun;
mod edges;
mod faults;
mod frames;
mod packed;
mod pages;
mod world;
