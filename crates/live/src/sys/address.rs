//! Addresses of sockets as the kernel takes and gives them: ip(7), ipv6(7).

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address and a port of one family.
pub(super) enum Address {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => Self::V4(v4(address)),
            SocketAddr::V6(address) => Self::V6(v6(address)),
        }
    }
}

impl Address {
    /// One that the kernel may overwrite with an address of either family.
    pub(super) fn longest() -> Self {
        Self::V6(v6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0)))
    }

    pub(super) fn family(&self) -> libc::c_int {
        match self {
            Self::V4(_) => libc::AF_INET,
            Self::V6(_) => libc::AF_INET6,
        }
    }

    /// Valid for [`Address::len`] bytes, while this value is borrowed.
    pub(super) fn pointer(&self) -> *const libc::sockaddr {
        match self {
            Self::V4(address) => std::ptr::from_ref(address).cast(),
            Self::V6(address) => std::ptr::from_ref(address).cast(),
        }
    }

    /// Valid for [`Address::len`] bytes, while this value is borrowed.
    pub(super) fn pointer_mut(&mut self) -> *mut libc::sockaddr {
        match self {
            Self::V4(address) => std::ptr::from_mut(address).cast(),
            Self::V6(address) => std::ptr::from_mut(address).cast(),
        }
    }

    pub(super) fn len(&self) -> libc::socklen_t {
        let bytes = match self {
            Self::V4(address) => size_of_val(address),
            Self::V6(address) => size_of_val(address),
        };
        libc::socklen_t::try_from(bytes).expect("at most 28")
    }

    /// Both families have the port at one offset.
    pub(super) fn port(&self) -> u16 {
        u16::from_be(match self {
            Self::V4(address) => address.sin_port,
            Self::V6(address) => address.sin6_port,
        })
    }
}

fn v4(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

fn v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: address.flowinfo(),
        sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
        sin6_scope_id: address.scope_id(),
    }
}
