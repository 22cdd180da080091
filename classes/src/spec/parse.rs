//! From text to [`Target`]. The grammar stands in `docs/stack-language.md`; each function here is
//! one of its rules.

use super::ast::{Address, FILE_CLASS, Layer, Opt, StackRef, Target};
use super::error::{Origin, Span, Spanned, SpecError, quoted};
use super::glyph::{Piece, glyphs};
use super::{LAYERS_MAX, OPTIONS_MAX, SPEC_BYTES_MAX};

/// How a stack file's name ends; only such a path can be followed by `#` and the name of a stack.
const STACK_FILE_SUFFIX: &str = ".toml";

/// The first word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// A bottom layer: a path, a class, or a stack of a file.
    Bottom,
    /// A layer that is put on others.
    Upper,
}

/// Reads the target written in `text`, whose errors are to point into `origin`.
pub(super) fn target(
    origin: &Origin,
    text: &str,
    begin: Begin,
    classes: &[&str],
) -> Result<Target, SpecError> {
    let parser = Parser { origin, classes };
    if text.len() > SPEC_BYTES_MAX {
        let span = Span::new(SPEC_BYTES_MAX, SPEC_BYTES_MAX);
        let message = format!("a target has at most {SPEC_BYTES_MAX} bytes, this has more");
        return Err(origin.error(span, message));
    }
    let glyphs = glyphs(origin, text)?;
    let all = Piece::new(&glyphs).trim();
    if all.is_empty() {
        let help = "write a path, or layers from the bottom up: md:64m | mbr";
        return Err(parser.error(all, "there is no layer here").with_help(help));
    }
    parser.target(all, begin)
}

struct Parser<'a> {
    origin: &'a Origin,
    classes: &'a [&'a str],
}

impl Parser<'_> {
    /// target = layer { "|" layer }, each layer with its address.
    fn target(&self, all: Piece<'_>, begin: Begin) -> Result<Target, SpecError> {
        let mut target = Target {
            stack: None,
            layers: Vec::new(),
            provider: None,
            origin: self.origin.clone(),
        };
        let bars = all.split('|').count() - 1;
        for (i, piece) in all.split('|').map(Piece::trim).enumerate() {
            if i >= LAYERS_MAX {
                return Err(self.error(piece, format!("a target has at most {LAYERS_MAX} layers")));
            }
            if piece.is_empty() {
                return Err(self.missing_layer(piece, i, bars));
            }
            let on = target.provider.take();
            let (body, address) = self.address(piece)?;
            target.provider = address;
            if i == 0 && begin == Begin::Bottom {
                match self.bottom(body)? {
                    Bottom::Layer(layer) => target.layers.push(layer),
                    Bottom::Stack(stack) => target.stack = Some(stack),
                }
            } else {
                target.layers.push(Layer {
                    on,
                    ..self.upper(body)?
                });
            }
        }
        Ok(target)
    }

    fn missing_layer(&self, piece: Piece<'_>, index: usize, bars: usize) -> SpecError {
        let at = piece.span().start_bytes;
        let message = match index {
            0 => "nothing before this `|`",
            _ if index == bars => "a layer is missing at the end",
            _ => "a layer is missing",
        };
        let error = self.origin.error(Span::new(at, at + 1), message);
        error.with_help("layers go from the bottom up, separated by `|`")
    }

    /// Splits "@address" off the end of a layer.
    fn address<'p>(&self, piece: Piece<'p>) -> Result<(Piece<'p>, Option<Address>), SpecError> {
        let Some((body, address)) = piece.split_last('@') else {
            return Ok((piece, None));
        };
        let (body, address) = (body.trim(), address.trim());
        if body.is_empty() {
            let at = body.span().end_bytes;
            return Err(self
                .origin
                .error(Span::new(at, at + 1), "nothing before this `@`")
                .with_help("an address follows a layer: disk.img@s1"));
        }
        let text = address.text();
        if text.is_empty() {
            return Err(self
                .error(address, "the name of a provider is missing after `@`")
                .with_help("write it, or the end of it: md0s1a or s1a"));
        }
        if let Some(at) = address.find(|c| c.is_whitespace() || "/?:,=#".contains(c)) {
            let span = address.span_at(at);
            let c = address.text_at(at);
            let error = self.origin.error(span, format!("an address has no `{c}`"));
            return Err(error.with_help(match c.as_str() {
                "?" => "options come before the address: disk.img?direct=1@s1",
                ":" | "," | "=" => "arguments come before the address: md:64m@s1",
                "/" => "if the `@` belongs to the path, quote the path: \"me@home/disk.img\"",
                _ => "separate layers by `|`; quote a name with such a character",
            }));
        }
        let text = Spanned::new(text, address.span());
        Ok((
            body,
            Some(Address {
                text,
                origin: self.origin.clone(),
                missing_path: None,
            }),
        ))
    }

    /// bottom = URI | class layer | path | stack of a file.
    fn bottom(&self, body: Piece<'_>) -> Result<Bottom, SpecError> {
        if let Some(class) = self.scheme(body) {
            let span = body
                .split_once(':')
                .map_or(body, |(scheme, _)| scheme)
                .span();
            return self
                .path(Spanned::new(class, span), body, body)
                .map(Bottom::Layer);
        }
        if let Some((head, rest)) = body.split_once(':')
            && let Some(class) = name_of(head)
        {
            if class == FILE_CLASS {
                let class = Spanned::new(class, head.trim().span());
                return self.path(class, body, rest.trim()).map(Bottom::Layer);
            }
            if !self.is_class(&class) {
                let advice = "a path with a colon is quoted, or begins with ./";
                return Err(self.unknown_class(head.trim(), &class, advice));
            }
            return self.class_layer(body).map(Bottom::Layer);
        }
        if name_of(body).is_some_and(|name| name == FILE_CLASS || self.is_class(&name)) {
            return self.class_layer(body).map(Bottom::Layer);
        }
        if let Some(stack) = self.stack_ref(body)? {
            return Ok(Bottom::Stack(stack));
        }
        if let Some((head, _)) = body.split_once('?')
            && let Some(class) = name_of(head).filter(|name| self.is_class(name))
        {
            let at = head.span().end_bytes;
            let error = self
                .origin
                .error(Span::new(at, at + 1), "a class has no `?`");
            return Err(error.with_help(format!(
                "its arguments follow a colon, as in `{class}:key=value`; a file of that name is \
                 `./{class}`"
            )));
        }
        let class = Spanned::new(FILE_CLASS.to_owned(), body.span());
        self.path(class, body, body).map(Bottom::Layer)
    }

    /// The class of a URI, when `body` is one: what stands before `://`, up to a `+`, and without
    /// the `s` of a scheme over TLS.
    fn scheme(&self, body: Piece<'_>) -> Option<String> {
        let (scheme, rest) = body.split_once(':')?;
        let name = scheme.plain_text()?;
        let class = name.split('+').next().unwrap_or_default();
        let is_uri = rest.text().starts_with("//") && rest.find(|c| c == '/') == Some(0);
        let mut classes = [Some(class), class.strip_suffix('s')].into_iter().flatten();
        let class = classes.find(|class| self.is_class(class));
        class.filter(|_| is_uri).map(str::to_owned)
    }

    /// stack of a file = path ending in ".toml" "#" name.
    fn stack_ref(&self, body: Piece<'_>) -> Result<Option<StackRef>, SpecError> {
        let Some((file, name)) = body.split_once('#') else {
            let ends_as_stack_file = body
                .plain_text()
                .is_some_and(|text| text.ends_with(STACK_FILE_SUFFIX) && !text.contains('?'));
            if !ends_as_stack_file {
                return Ok(None);
            }
            let message = "this names a stack file, but none of its stacks";
            let help = "append `#` and the name of the stack; put `file:` before the path of an \
             image";
            return Err(self.error(body, message).with_help(help));
        };
        let (file, name) = (file.trim(), name.trim());
        let path = file.text();
        if !path.ends_with(STACK_FILE_SUFFIX) {
            return Ok(None);
        }
        self.no_nul(file, &path)?;
        let text = name.plain_text().unwrap_or_default();
        if !is_stack_name(&text) {
            let help = "a stack's name has letters, digits, `_`, `-` and `.`";
            return Err(self
                .error(name, "this is not the name of a stack")
                .with_help(help));
        }
        Ok(Some(StackRef {
            file: Spanned::new(path, file.span()),
            name: Spanned::new(text, name.span()),
        }))
    }

    /// path = characters [ "?" option { "&" option } ]; `whole` is the layer, for its span.
    fn path(
        &self,
        class: Spanned<String>,
        whole: Piece<'_>,
        body: Piece<'_>,
    ) -> Result<Layer, SpecError> {
        let (path, options) = match body.split_once('?') {
            Some((path, options)) => (path.trim(), Some(options)),
            None => (body, None),
        };
        let text = path.text();
        if text.is_empty() {
            return Err(self.error(path, "the path is empty"));
        }
        self.no_nul(path, &text)?;
        let mut layer = self.layer(class, whole.span());
        layer.positional.push(Spanned::new(text, path.span()));
        if let Some(options) = options {
            for piece in options.split('&').map(Piece::trim) {
                let Some((key, value)) = piece.split_once('=') else {
                    let help = "options follow `?`, separated by `&`: direct=1&lock=0";
                    return Err(self.error(piece, "an option is key=value").with_help(help));
                };
                self.push_option(&mut layer, key.trim(), value.trim())?;
            }
        }
        Ok(layer)
    }

    /// upper = class layer.
    fn upper(&self, body: Piece<'_>) -> Result<Layer, SpecError> {
        let head = body.split_once(':').map_or(body, |(head, _)| head).trim();
        match name_of(head) {
            Some(class) if class == FILE_CLASS => Err(self
                .error(head, "a file can only be the bottom layer")
                .with_help("layers go from the bottom up: disk.img | nop")),
            Some(class) if self.is_class(&class) => self.class_layer(body),
            Some(class) => {
                let advice = format!("there are: {}", self.classes.join(", "));
                Err(self.unknown_class(head, &class, &advice))
            }
            None => Err(self
                .error(head, format!("{} is not a class", quoted(&head.text())))
                .with_help("`|` is followed by a class, unquoted; only the bottom can be a path")),
        }
    }

    /// class layer = class [ ":" argument { "," argument } ].
    fn class_layer(&self, body: Piece<'_>) -> Result<Layer, SpecError> {
        let (head, arguments) = match body.split_once(':') {
            Some((head, arguments)) => (head.trim(), Some(arguments)),
            None => (body, None),
        };
        let class = Spanned::new(head.text(), head.span());
        if class.value == FILE_CLASS {
            return Err(self
                .error(head, "the path is missing")
                .with_help("write file:PATH; a file called `file` is `./file`"));
        }
        let mut layer = self.layer(class, body.span());
        let Some(arguments) = arguments else {
            return Ok(layer);
        };
        for piece in arguments.split(',').map(Piece::trim) {
            if let Some((key, value)) = piece.split_once('=') {
                self.push_option(&mut layer, key.trim(), value.trim())?;
                continue;
            }
            let value = self.value(piece)?;
            if !layer.options.is_empty() {
                let message = format!("{} has no name", quoted(&value.value));
                let help = "values without a name come before those with one";
                return Err(self.error(piece, message).with_help(help));
            }
            self.bounded(&layer, piece)?;
            layer.positional.push(value);
        }
        Ok(layer)
    }

    /// option = name "=" value.
    fn push_option(
        &self,
        layer: &mut Layer,
        key: Piece<'_>,
        value: Piece<'_>,
    ) -> Result<(), SpecError> {
        if key.is_empty() {
            return Err(self.error(key, "the name of the option is missing"));
        }
        self.no_space(key)?;
        let Some(name) = name_of(key) else {
            let message = format!("{} is not the name of an option", quoted(&key.text()));
            let help = "a name has letters, digits, `_` and `-`; a value with `=` is quoted";
            return Err(self.error(key, message).with_help(help));
        };
        if layer.options.iter().any(|option| option.key.value == name) {
            return Err(self.error(key, format!("{} is given twice", quoted(&name))));
        }
        self.bounded(layer, key)?;
        let value = self.value(value)?;
        layer.options.push(Opt {
            key: Spanned::new(name, key.span()),
            value,
        });
        Ok(())
    }

    /// value = characters without plain white space.
    fn value(&self, piece: Piece<'_>) -> Result<Spanned<String>, SpecError> {
        if piece.is_empty() {
            let error = self.error(piece, "a value is missing");
            return Err(error.with_help("an empty value is written \"\""));
        }
        self.no_space(piece)?;
        Ok(Spanned::new(piece.text(), piece.span()))
    }

    /// Refuses a plain space, which most often shows that a separator was forgotten.
    fn no_space(&self, piece: Piece<'_>) -> Result<(), SpecError> {
        let Some(at) = piece.find(char::is_whitespace) else { return Ok(()) };
        Err(self
            .origin
            .error(piece.span_at(at), "an argument has no space")
            .with_help("put `|` between layers and `,` between arguments, or quote the value"))
    }

    fn bounded(&self, layer: &Layer, piece: Piece<'_>) -> Result<(), SpecError> {
        if layer.positional.len() + layer.options.len() < OPTIONS_MAX {
            return Ok(());
        }
        Err(self.error(
            piece,
            format!("a layer has at most {OPTIONS_MAX} arguments"),
        ))
    }

    fn no_nul(&self, piece: Piece<'_>, path: &str) -> Result<(), SpecError> {
        if path.contains('\0') {
            return Err(self.error(piece, "a path cannot hold a NUL character"));
        }
        Ok(())
    }

    fn layer(&self, class: Spanned<String>, span: Span) -> Layer {
        Layer {
            on: None,
            class,
            positional: Vec::new(),
            options: Vec::new(),
            span,
            origin: self.origin.clone(),
        }
    }

    fn is_class(&self, name: &str) -> bool {
        self.classes.contains(&name)
    }

    /// The error for a name that is no class, with the nearest one or else `advice`.
    fn unknown_class(&self, head: Piece<'_>, class: &str, advice: &str) -> SpecError {
        let error = self.error(head, format!("there is no class {}", quoted(class)));
        match super::nearest(class, self.classes.iter().copied()) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error.with_help(advice),
        }
    }

    fn error(&self, piece: Piece<'_>, message: impl Into<String>) -> SpecError {
        self.origin.error(piece.span(), message)
    }
}

enum Bottom {
    Layer(Layer),
    Stack(StackRef),
}

/// name = letter { letter | digit | "_" | "-" }, unquoted: the form of classes and options.
fn name_of(piece: Piece<'_>) -> Option<String> {
    let name = piece.trim().plain_text()?;
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name_char))
        .then_some(name)
}

/// Whether a stack of a stack file may be called so.
pub(super) fn is_stack_name(name: &str) -> bool {
    let is_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty() && name.chars().all(is_char)
}
