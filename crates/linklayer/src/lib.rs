//! What an IP packet costs on the wire: encapsulations, cell and block framing, header compression.
