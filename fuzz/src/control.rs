//! The lines of the control socket: whatever comes, a message or an error comes out, and a message
//! that was understood is said again in the same sense.

use ugeom_serve::control::{Answer, Question};

/// Reads a line as a question and as an answer.
pub fn lines(data: &[u8]) {
    if let Ok(question) = Question::parse(data) {
        let again = Question::parse(question.line().as_bytes());
        assert_eq!(again.expect("our own question"), question);
    }
    if let Ok(answer) = Answer::parse(data) {
        let line = answer.line();
        assert_eq!(line.find('\n'), Some(line.len() - 1), "one line");
        // A double may come out as a neighbour that prints the same.
        Answer::parse(line.as_bytes()).expect("our own answer");
    }
}
