//! The declarative macros behind the protocol types, in one file because they must be defined before every module that
//! uses them.
//!
//! They exist so that a wire word is written exactly once: the word, the Rust name and the documentation stand on one
//! line, and both directions of the conversion follow from it.

/// Declares marker types for requests: `Name = "wire/name"(Params) -> Result;`.
macro_rules! request_markers {
    ($( $(#[$meta:meta])* $name:ident = $method:literal ($params:ty) -> $result:ty; )*) => { $(
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl ::lsp_types::request::Request for $name {
            type Params = $params;
            type Result = $result;
            const METHOD: &'static str = $method;
        }
    )* };
}

/// Declares marker types for notifications: `Name = "wire/name"(Params);`.
macro_rules! notification_markers {
    ($( $(#[$meta:meta])* $name:ident = $method:literal ($params:ty); )*) => { $(
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl ::lsp_types::notification::Notification for $name {
            type Params = $params;
            const METHOD: &'static str = $method;
        }
    )* };
}

/// A set of words that only this server writes. A word outside the set is an error, which in a test client is what one
/// wants to see.
macro_rules! closed_words {
    ($( $(#[$meta:meta])* pub enum $name:ident {
        $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+
    } )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// The word as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+ };
}

/// A set of words that clients write. A word outside the set is kept in `Other`, because a newer client is not a broken
/// client. A variant may have further spellings after `|`; the first one is written.
macro_rules! open_words {
    ($( $(#[$meta:meta])* pub enum $name:ident {
        $( $(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $alias:literal)*, )+
    } )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A word this version does not know.
            Other(String),
        }

        impl $name {
            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $( $word $(| $alias)* => Self::$variant, )+
                    _ => Self::Other(word),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    )+ };
}

/// A union whose members are told apart by one string field.
///
/// `pub enum ChatContent: "content" by "type" { Text(ChatTextContent) = "text", … }`: the first literal is how error
/// messages call the union, the second is the field that holds the word. Serde's own internally tagged enums refuse an
/// unknown word and its untagged ones hide why a known word failed; see [`crate::tagged`] for how both are avoided.
macro_rules! tagged_union {
    ($( $(#[$meta:meta])* pub enum $name:ident: $label:literal by $tag:literal {
        $( $(#[$variant_meta:meta])* $variant:ident($member:ty) = $word:literal, )+
    } )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        #[serde(tag = $tag)]
        #[allow(clippy::large_enum_variant, reason = "built once, written once; a box would burden every constructor")]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $word)] $variant($member), )+
            /// A member this version does not know, exactly as it came.
            #[serde(untagged)]
            Unknown(::serde_json::Value),
        }

        impl $name {
            /// The word that tells the members apart; empty if an unknown member has none.
            pub fn tag(&self) -> &str {
                match self {
                    $( Self::$variant(_) => $word, )+
                    Self::Unknown(value) => $crate::tagged::tag_of(value, $tag).unwrap_or_default(),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = $crate::tagged::object(deserializer, $label)?;
                match $crate::tagged::tag_of(&value, $tag) {
                    $( Some($word) => $crate::tagged::member(value, $label, $word).map(Self::$variant), )+
                    _ => Ok(Self::Unknown(value)),
                }
            }
        }

        $( impl From<$member> for $name {
            fn from(member: $member) -> Self {
                Self::$variant(member)
            }
        } )+
    )+ };
}

/// Identifiers: strings that must not be mixed up, read from a number as well because eca-nvim sends one as its chat
/// id.
macro_rules! string_ids {
    ($( $(#[$meta:meta])* $name:ident; )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::tolerant::text_or_number(deserializer).map(Self)
            }
        }
    )+ };
}
