//! Choice of the kernel of a process: the fastest that the CPU supports, or the one that the environment
//! names.

use super::Kernel;
use std::{env, fmt, sync::OnceLock};

/// The environment variable that forces a kernel.
const KERNEL_VARIABLE: &str = "TIERDEX_KERNEL";

/// The names of all kernels, including those that this CPU does not support.
const KERNEL_NAMES: [&str; 4] = ["scalar", "avx2", "avx512f", "avx512"];

/// Why there is no kernel of a given name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelError {
    /// No kernel has this name.
    Unknown(String),
    /// The CPU lacks the instructions of this kernel.
    Unsupported(String),
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[&str]| names.join(", ");
        match self {
            KernelError::Unknown(name) => {
                write!(f, "no kernel is called `{name}`; there are {}", list(&KERNEL_NAMES))
            }
            KernelError::Unsupported(name) => {
                let able: Vec<_> = Kernel::available().into_iter().map(Kernel::name).collect();
                write!(f, "this CPU cannot run the kernel `{name}`; it can run {}", list(&able))
            }
        }
    }
}

impl std::error::Error for KernelError {}

impl Kernel {
    /// The kernels that this CPU supports, the slowest first. [`Kernel::SCALAR`] is always supported.
    pub fn available() -> Vec<Kernel> {
        #[cfg(target_arch = "x86_64")]
        let vector = [
            super::avx2::table_if_supported(),
            super::avx512::available_f(),
            super::avx512::table_if_supported(),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let vector: [Option<_>; 0] = [];
        let vector = vector.into_iter().flatten().map(Kernel);
        [Kernel::SCALAR].into_iter().chain(vector).collect()
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    /// If no kernel has that name or this CPU does not support it.
    pub fn from_name(name: &str) -> Result<Kernel, KernelError> {
        match Kernel::available().into_iter().find(|kernel| kernel.name() == name) {
            Some(kernel) => Ok(kernel),
            None if KERNEL_NAMES.contains(&name) => Err(KernelError::Unsupported(name.to_owned())),
            None => Err(KernelError::Unknown(name.to_owned())),
        }
    }

    /// The kernel that `TIERDEX_KERNEL` names; `None` if the variable is unset or empty.
    ///
    /// # Errors
    /// If the variable names an unknown or unsupported kernel.
    pub fn forced() -> Result<Option<Kernel>, KernelError> {
        let name = env::var_os(KERNEL_VARIABLE).filter(|name| !name.is_empty());
        name.map(|name| Kernel::from_name(&name.to_string_lossy())).transpose()
    }

    /// The kernel that `TIERDEX_KERNEL` names; if it is unset, the fastest that this CPU supports.
    ///
    /// # Errors
    /// As [`Kernel::forced`].
    pub fn from_env() -> Result<Kernel, KernelError> {
        let best = || Kernel::available().pop().unwrap_or(Kernel::SCALAR);
        Ok(Kernel::forced()?.unwrap_or_else(best))
    }

    /// The kernel of this process: the result of the first call of [`Kernel::from_env`].
    ///
    /// # Panics
    /// If [`Kernel::from_env`] is an error. Programs call that first and report its error.
    pub fn active() -> Kernel {
        static ACTIVE_KERNEL: OnceLock<Kernel> = OnceLock::new();
        *ACTIVE_KERNEL.get_or_init(|| match Kernel::from_env() {
            Ok(kernel) => kernel,
            Err(error) => panic!("{KERNEL_VARIABLE}: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_kernel_has_its_name() {
        for kernel in Kernel::available() {
            assert_eq!(Kernel::from_name(kernel.name()), Ok(kernel));
            assert!(KERNEL_NAMES.contains(&kernel.name()));
        }
        assert_eq!(Kernel::available()[0], Kernel::SCALAR);
    }

    #[test]
    fn other_names_are_errors() {
        for name in ["", "AVX2", "sse", "avx512vl"] {
            assert_eq!(Kernel::from_name(name), Err(KernelError::Unknown(name.to_owned())));
        }
        let able: Vec<_> = Kernel::available().into_iter().map(Kernel::name).collect();
        for name in KERNEL_NAMES.into_iter().filter(|name| !able.contains(name)) {
            assert_eq!(Kernel::from_name(name), Err(KernelError::Unsupported(name.to_owned())));
        }
    }
}
