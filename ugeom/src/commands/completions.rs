//! `ugeom completions`: completions of commands and flags for a shell.

use crate::output;
use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  ugeom completions bash > ~/.local/share/bash-completion/completions/ugeom
  ugeom completions zsh > ~/.zfunc/_ugeom
  ugeom completions fish > ~/.config/fish/completions/ugeom.fish";

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// Shell to print completions for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub fn run(&self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut crate::completed_command(),
            "ugeom",
            &mut script,
        );
        output::print(&String::from_utf8_lossy(&script))
    }
}
