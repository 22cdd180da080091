//! The stack language: any text is read or refused without a panic, and a parsed text prints as a
//! text that reads the same. The same bytes are also tried as a stack file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ugeom_classes::spec::{StackFile, parse};

const CLASSES: &[&str] = &["md", "zero", "nop", "disk", "mbr"];

fuzz_target!(|text: &str| {
    match parse(text, CLASSES) {
        Ok(target) => {
            let printed = target.to_string();
            assert_eq!(parse(&printed, CLASSES), Ok(target), "{printed}");
        }
        Err(error) => assert!(error.to_string().contains('^')),
    }
    match StackFile::parse("stacks.toml", text, CLASSES) {
        Ok(file) => {
            for name in file.names() {
                let target =
                    parse(&format!("stacks.toml#{name}"), CLASSES).expect("a stack's name");
                let stack = file.expand(target).expect("a stack of the file");
                assert!(stack.target.stack.is_none() && !stack.target.layers.is_empty());
            }
        }
        Err(error) => assert!(error.to_string().contains('^')),
    }
});
