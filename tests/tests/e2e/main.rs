//! The program as its users meet it: arguments in, text and exit codes out, beside the programs
//! that they would use otherwise.

mod ab;
mod arguments;
mod bad_input;
mod cached;
mod compare;
mod content;
mod crash;
mod diskinfo;
mod disks;
mod files;
mod fio;
mod fio_files;
mod fio_ratio;
mod geli;
mod iostat;
mod lab;
mod lost;
mod metrics;
mod ministat;
mod mounted;
mod odd_size;
mod part;
mod raidtest;
mod report;
mod run;
mod serve;
mod serve_killed;
mod serve_others;
mod session;
mod show;
mod sockets;
mod stat;
mod tls;
mod transfer;
mod upstream;
