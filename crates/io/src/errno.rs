//! Error numbers of Linux for fault plans. They are the same on all common architectures.

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such file.
pub const ENOENT: i32 = 2;
/// The device could not read or write.
pub const EIO: i32 = 5;
/// Permission denied.
pub const EACCES: i32 = 13;
/// Too many open files in this process.
pub const EMFILE: i32 = 24;
/// The file would grow over the limit of the process.
pub const EFBIG: i32 = 27;
/// No space left on the device.
pub const ENOSPC: i32 = 28;
/// The file system is mounted read-only.
pub const EROFS: i32 = 30;
/// The user's quota is used up.
pub const EDQUOT: i32 = 122;
