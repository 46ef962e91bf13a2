//! Memory of one NUMA node, for example of a node with memory and without processors (CXL).

use super::mapping::Mapping;
use std::{fs, io};

/// Maximum number of NUMA nodes of the kernel.
const NODES_MAX: usize = 1024;

const WORD_BITS: usize = u64::BITS as usize;

/// Maps `len` bytes of memory of a node.
pub(super) fn map_node_memory(node: u32, len: usize) -> io::Result<Mapping> {
    let available = available_bytes(node)?;
    if len as u64 > available {
        let why = format!("it needs {len} bytes and node {node} has {available} available");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
    }
    let mut mapping = Mapping::anonymous(len, 0)?;
    bind_to_node(&mapping, node)?;
    mapping.set_huge_pages(true);
    mapping.populate()?;
    Ok(mapping)
}

/// Bytes of a node that can be allocated: free pages, and page cache except for shared memory.
fn available_bytes(node: u32) -> io::Result<u64> {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no node {node}")));
        }
        other => other?,
    };
    // Lines like `Node 0 MemTotal:       24684092 kB`.
    let bytes = |name: &str| {
        let number = text.lines().find_map(|line| line.split_once(name)?.1.trim().strip_suffix(" kB"));
        number.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    if bytes(" MemTotal:") == 0 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("node {node} has no memory")));
    }
    Ok(bytes(" MemFree:") + bytes(" FilePages:").saturating_sub(bytes(" Shmem:")))
}

/// Makes the kernel allocate the pages of `mapping` on a node.
fn bind_to_node(mapping: &Mapping, node: u32) -> io::Result<()> {
    let node = node as usize;
    if node >= NODES_MAX {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no node {node}")));
    }
    let mut mask = [0_u64; NODES_MAX / WORD_BITS];
    mask[node / WORD_BITS] = 1 << (node % WORD_BITS);
    // SAFETY: the call gets the pages of `mapping` only, and a mask of NODES_MAX bits that outlives the call;
    // it changes no byte.
    let bound = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.start(),
            mapping.len(),
            libc::MPOL_BIND,
            mask.as_ptr(),
            // The kernel reads one bit less than the number of bits that it is given.
            NODES_MAX + 1,
            0,
        )
    };
    if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
