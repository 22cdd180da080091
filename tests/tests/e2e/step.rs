//! Transcripts in the documents: commands and their output.

/// A command and what it prints.
pub struct Step {
    pub command: String,
    pub expected: Vec<String>,
}

/// The steps of each transcript of a text. A line that begins with one of `prompts` is a command.
pub fn transcripts(text: &str, prompts: &[&str]) -> Vec<Vec<Step>> {
    let text = text.replace("\\\n", "");
    let blocks = text.split("```console\n").skip(1);
    let steps = blocks.map(|block| {
        let (block, _) = block.split_once("```").expect("the end of a block");
        let mut steps: Vec<Step> = Vec::new();
        for line in block.lines() {
            let command = prompts.iter().find_map(|prompt| line.strip_prefix(prompt));
            match (command, steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    expected: Vec::new(),
                }),
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("{line}: output without a command"),
            }
        }
        steps
    });
    steps.collect()
}
