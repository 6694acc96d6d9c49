//! GraphQL's schema language: a reader for type definitions. Directives and default values are
//! skipped; operations do not belong into a schema and are refused.

mod tokens;

use super::Spec;
use super::graphql::{Body, Member, Schema, TypeRef};
use super::problems::Problems;
use super::schema::described;
use tokens::{Token, Tokens};

/// Lists of lists, and values inside of values: nobody writes more.
const DEEPEST: usize = 32;

pub(super) fn read(text: &str) -> Result<Spec, Problems> {
    let mut reader = Reader { tokens: Tokens::new(text), schema: Schema::default() };
    match reader.document() {
        Ok(()) => reader.schema.into_spec(),
        Err(message) => {
            let line = reader.tokens.line();
            Err(Problems::one("", format!("the GraphQL schema cannot be read, line {line}: {message}")))
        }
    }
}

/// Whether a text that is not JSON begins as a schema does, and not as YAML would.
pub(super) fn is_likely(text: &str) -> bool {
    let mut tokens = Tokens::new(text);
    let Ok(mut first) = tokens.next() else { return false };
    if matches!(first, Token::Text(_)) {
        let Ok(second) = tokens.next() else { return false };
        first = second;
    }
    let Token::Name(word) = first else { return false };
    let second = tokens.next();
    match word {
        "schema" => matches!(second, Ok(Token::Mark('{' | '@'))),
        "extend" | "type" | "interface" | "union" | "enum" | "input" | "scalar" => {
            matches!(second, Ok(Token::Name(_)))
        }
        "directive" => matches!(second, Ok(Token::Mark('@'))),
        // A query is GraphQL too, if not a schema; the reader says so.
        "query" | "mutation" | "subscription" | "fragment" => {
            matches!(second, Ok(Token::Name(_) | Token::Mark('{' | '(')))
        }
        _ => false,
    }
}

struct Reader<'a> {
    tokens: Tokens<'a>,
    schema: Schema,
}

type Read<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn document(&mut self) -> Read<()> {
        loop {
            let description = self.description()?;
            match self.tokens.next()? {
                Token::End => return Ok(()),
                Token::Name("extend") => {}
                Token::Name(word) => self.definition(word, description)?,
                other => return Err(format!("a definition is expected, not {other}")),
            }
        }
    }

    fn definition(&mut self, word: &str, description: Option<String>) -> Read<()> {
        match word {
            "schema" => {
                self.schema.description = description;
                return self.roots();
            }
            "directive" => return self.directive_definition(),
            "query" | "mutation" | "subscription" | "fragment" => {
                return Err(format!("a {word} is an operation, not a schema"));
            }
            "scalar" | "type" | "interface" | "input" | "union" | "enum" => {}
            other => return Err(format!("\"{other}\" begins no definition")),
        }
        let name = self.name()?;
        if word == "type" || word == "interface" {
            self.implemented()?;
        }
        self.directives()?;
        let body = match word {
            "scalar" => Body::Scalar,
            "union" => Body::Union(self.union_members()?),
            "enum" => Body::Enum(self.enum_values()?),
            _ => Body::Object(self.fields()?),
        };
        let known = self.schema.entry(name, empty_like(&body));
        known.description = known.description.take().or(description);
        match (&mut known.body, body) {
            (Body::Object(known), Body::Object(more)) => known.extend(more),
            (Body::Union(known), Body::Union(more)) | (Body::Enum(known), Body::Enum(more)) => known.extend(more),
            (Body::Scalar, Body::Scalar) => {}
            _ => return Err(format!("{name} is defined twice, in different ways")),
        }
        Ok(())
    }

    fn roots(&mut self) -> Read<()> {
        self.directives()?;
        if !self.tokens.eat('{')? {
            return Ok(());
        }
        while !self.tokens.eat('}')? {
            let word = match self.name()? {
                "query" => "query",
                "mutation" => "mutation",
                "subscription" => "subscription",
                other => return Err(format!("a schema has no root \"{other}\"")),
            };
            self.expect(':')?;
            let name = self.name()?;
            self.schema.roots.insert(word, name.to_owned());
        }
        Ok(())
    }

    /// `directive @name(…) repeatable on A | B`: read to be skipped.
    fn directive_definition(&mut self) -> Read<()> {
        self.expect('@')?;
        self.name()?;
        self.arguments()?;
        let mut word = self.name()?;
        if word == "repeatable" {
            word = self.name()?;
        }
        if word != "on" {
            return Err(format!("\"on\" is expected, not \"{word}\""));
        }
        self.tokens.eat('|')?;
        self.name()?;
        while self.tokens.eat('|')? {
            self.name()?;
        }
        Ok(())
    }

    fn implemented(&mut self) -> Read<()> {
        if !self.tokens.eat_name("implements")? {
            return Ok(());
        }
        self.tokens.eat('&')?;
        self.name()?;
        // Older schemas separate them by nothing.
        while self.tokens.eat('&')? || self.tokens.peek_is_name()? {
            self.name()?;
        }
        Ok(())
    }

    fn fields(&mut self) -> Read<Vec<Member>> {
        let mut fields = Vec::new();
        if !self.tokens.eat('{')? {
            return Ok(fields);
        }
        while !self.tokens.eat('}')? {
            let description = self.description()?;
            let name = self.name()?.to_owned();
            let arguments = self.arguments()?;
            self.expect(':')?;
            let of = self.type_ref(0)?;
            self.default_value()?;
            let deprecated = self.directives()?;
            fields.push(Member { name, description, of, arguments, deprecated });
        }
        Ok(fields)
    }

    fn arguments(&mut self) -> Read<Vec<Member>> {
        let mut arguments = Vec::new();
        if !self.tokens.eat('(')? {
            return Ok(arguments);
        }
        while !self.tokens.eat(')')? {
            let description = self.description()?;
            let name = self.name()?.to_owned();
            self.expect(':')?;
            let of = self.type_ref(0)?;
            self.default_value()?;
            let deprecated = self.directives()?;
            arguments.push(Member { name, description, of, arguments: Vec::new(), deprecated });
        }
        Ok(arguments)
    }

    fn union_members(&mut self) -> Read<Vec<String>> {
        let mut names = Vec::new();
        if self.tokens.eat('=')? {
            self.tokens.eat('|')?;
            names.push(self.name()?.to_owned());
            while self.tokens.eat('|')? {
                names.push(self.name()?.to_owned());
            }
        }
        Ok(names)
    }

    fn enum_values(&mut self) -> Read<Vec<String>> {
        let mut values = Vec::new();
        if self.tokens.eat('{')? {
            while !self.tokens.eat('}')? {
                self.description()?;
                values.push(self.name()?.to_owned());
                self.directives()?;
            }
        }
        Ok(values)
    }

    fn type_ref(&mut self, depth: usize) -> Read<TypeRef> {
        if depth > DEEPEST {
            return Err("a type has too many lists inside of each other".to_owned());
        }
        let inside = match self.tokens.next()? {
            Token::Name(name) => TypeRef::Named { name: name.to_owned(), required: false },
            Token::Mark('[') => {
                let of = Box::new(self.type_ref(depth + 1)?);
                self.expect(']')?;
                TypeRef::List { of, required: false }
            }
            other => return Err(format!("a type is expected, not {other}")),
        };
        if !self.tokens.eat('!')? {
            return Ok(inside);
        }
        Ok(match inside {
            TypeRef::Named { name, .. } => TypeRef::Named { name, required: true },
            TypeRef::List { of, .. } => TypeRef::List { of, required: true },
        })
    }

    fn default_value(&mut self) -> Read<()> {
        if self.tokens.eat('=')? { self.value(0) } else { Ok(()) }
    }

    /// Skips a value.
    fn value(&mut self, depth: usize) -> Read<()> {
        if depth > DEEPEST {
            return Err("a value is nested too deeply".to_owned());
        }
        match self.tokens.next()? {
            Token::Name(_) | Token::Text(_) | Token::Number => Ok(()),
            Token::Mark('$') => self.name().map(|_| ()),
            Token::Mark('[') => {
                while !self.tokens.eat(']')? {
                    self.value(depth + 1)?;
                }
                Ok(())
            }
            Token::Mark('{') => {
                while !self.tokens.eat('}')? {
                    self.name()?;
                    self.expect(':')?;
                    self.value(depth + 1)?;
                }
                Ok(())
            }
            other => Err(format!("a value is expected, not {other}")),
        }
    }

    /// Skips directives; says whether one of them is `@deprecated`.
    fn directives(&mut self) -> Read<bool> {
        let mut deprecated = false;
        while self.tokens.eat('@')? {
            deprecated |= self.name()? == "deprecated";
            if self.tokens.eat('(')? {
                while !self.tokens.eat(')')? {
                    self.name()?;
                    self.expect(':')?;
                    self.value(0)?;
                }
            }
        }
        Ok(deprecated)
    }

    fn description(&mut self) -> Read<Option<String>> {
        Ok(self.tokens.eat_text()?.map(|text| described(&text)).filter(|text| !text.is_empty()))
    }

    fn name(&mut self) -> Read<&'a str> {
        match self.tokens.next()? {
            Token::Name(name) => Ok(name),
            other => Err(format!("a name is expected, not {other}")),
        }
    }

    fn expect(&mut self, mark: char) -> Read<()> {
        match self.tokens.next()? {
            Token::Mark(found) if found == mark => Ok(()),
            other => Err(format!("\"{mark}\" is expected, not {other}")),
        }
    }
}

/// What a type is before anything is known of its inside.
fn empty_like(body: &Body) -> Body {
    match body {
        Body::Scalar => Body::Scalar,
        Body::Object(_) => Body::Object(Vec::new()),
        Body::Union(_) => Body::Union(Vec::new()),
        Body::Enum(_) => Body::Enum(Vec::new()),
    }
}
