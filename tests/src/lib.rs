//! What the end-to-end tests share: images, and ways to look at what the program printed.
#![forbid(unsafe_code)]
