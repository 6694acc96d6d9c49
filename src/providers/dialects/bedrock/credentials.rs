//! Who asks, and where: what Amazon's own tools keep in variables and in two small files.
//!
//! Reading them is the caller's; here is only what they mean. Roles, single sign-on and programs
//! that print credentials are not followed: a profile that has nothing else has no credentials.

use std::collections::BTreeMap;

use crate::config::Secret;

/// A pair of keys, and the token that makes a temporary pair valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: Secret,
    pub session_token: Option<Secret>,
}

/// What a profile says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsProfile {
    pub credentials: Option<AwsCredentials>,
    pub region: Option<String>,
}

/// With which credentials and in which region requests are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsAccess {
    pub credentials: Option<AwsCredentials>,
    pub region: Option<String>,
}

impl AwsAccess {
    /// The usual order: the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_DEFAULT_REGION`; then the profile that
    /// `AWS_PROFILE` names, else `default`, from the texts of `~/.aws/credentials` and
    /// `~/.aws/config`.
    pub fn find(variable: impl Fn(&str) -> Option<String>, credentials_text: &str, config_text: &str) -> Self {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let name = set("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let profile = parse_profiles(credentials_text, config_text, &name).unwrap_or_default();
        let pair = set("AWS_ACCESS_KEY_ID").zip(set("AWS_SECRET_ACCESS_KEY"));
        let credentials = pair.map(|(access_key_id, secret)| AwsCredentials {
            access_key_id,
            secret_access_key: Secret::new(secret),
            session_token: set("AWS_SESSION_TOKEN").map(Secret::new),
        });
        Self {
            credentials: credentials.or(profile.credentials),
            region: set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).or(profile.region),
        }
    }
}

/// The profile of that name out of the texts of both files; `None` when neither knows it. What the
/// credentials file says comes first.
pub fn parse_profiles(credentials_text: &str, config_text: &str, profile: &str) -> Option<AwsProfile> {
    let mut values = BTreeMap::new();
    let in_config = if profile == "default" { "default".to_owned() } else { format!("profile {profile}") };
    let mut known = section(config_text, &in_config, &mut values);
    // The file of credentials has no prefix, and in the other one the default may have it as well.
    known |= profile == "default" && section(config_text, "profile default", &mut values);
    known |= section(credentials_text, profile, &mut values);
    if !known {
        return None;
    }
    let mut take = |key: &str| values.remove(key).filter(|value: &String| !value.is_empty());
    let pair = take("aws_access_key_id").zip(take("aws_secret_access_key"));
    let token = take("aws_session_token").map(Secret::new);
    let credentials = pair.map(|(access_key_id, secret)| AwsCredentials {
        access_key_id,
        secret_access_key: Secret::new(secret),
        session_token: token,
    });
    Some(AwsProfile { credentials, region: take("region") })
}

/// The region in the name of one of Amazon's own hosts.
pub(super) fn region_of(host: &str) -> Option<&str> {
    if !(host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn")) {
        return None;
    }
    let mut labels = host.split('.');
    labels.find(|label| matches!(*label, "bedrock-runtime" | "bedrock-runtime-fips"))?;
    labels.next().filter(|label| is_region(label))
}

/// Where a region is served; `None` when the text is no region.
pub(super) fn default_url(region: &str) -> Option<String> {
    let end = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    is_region(region).then(|| format!("https://bedrock-runtime.{region}.{end}"))
}

/// Checked because it becomes part of a host's name, and with it of who gets the request.
fn is_region(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.contains('-') && text.len() <= 32 && text.chars().all(allowed)
}

/// Puts the values of one section into `values`, over what is there. False when it is missing.
fn section(text: &str, wanted: &str, values: &mut BTreeMap<String, String>) -> bool {
    let mut inside = false;
    let mut found = false;
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            inside = name.split_whitespace().eq(wanted.split_whitespace());
            found |= inside;
            continue;
        }
        // An indented line belongs to a group of settings that no one needs here.
        let nested = line.starts_with([' ', '\t']);
        if let Some((key, value)) = trimmed.split_once('=').filter(|_| inside && !nested) {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\u{FEFF}# mine\r\n[default]\r\naws_access_key_id = AKIA1\r\naws_secret_access_key=s/1+x=\r\n\
        [ work ]\naws_access_key_id=AKIA2\naws_secret_access_key=s2 # old\naws_session_token = t2\n; end\n[half]\naws_access_key_id=x\n";
    const CONFIG: &str = "[default]\nregion = us-east-1\noutput = json\ns3 =\n  region = nested\n[profile work]\n\
        Region = eu-central-1\naws_access_key_id = shadowed\n[profile sso]\nsso_session = corp\nregion = us-west-2\n[work]\nregion = wrong\n";

    fn keys(id: &str, secret: &str, token: Option<&str>) -> Option<AwsCredentials> {
        Some(AwsCredentials {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret),
            session_token: token.map(Secret::new),
        })
    }

    fn profile(name: &str) -> Option<(Option<AwsCredentials>, Option<String>)> {
        parse_profiles(CREDENTIALS, CONFIG, name).map(|profile| (profile.credentials, profile.region))
    }

    #[test]
    fn profiles_are_read_from_both_files() {
        assert_eq!(profile("default"), Some((keys("AKIA1", "s/1+x=", None), Some("us-east-1".to_owned()))));
        assert_eq!(profile("work"), Some((keys("AKIA2", "s2", Some("t2")), Some("eu-central-1".to_owned()))));
        assert_eq!(profile("sso"), Some((None, Some("us-west-2".to_owned()))));
        assert_eq!(profile("half"), Some((None, None)));
        assert_eq!(profile("missing"), None);
        assert_eq!(parse_profiles("", "", "default"), None);
        assert_eq!(parse_profiles("[default\nno equals\n=\n[]\n", "]", "default").map(|p| p.region), Some(None));
        let prefixed = parse_profiles("", "[profile default]\nregion=r-1\n", "default").unwrap();
        assert_eq!(prefixed.region.as_deref(), Some("r-1"));
    }

    #[test]
    fn variables_come_before_profiles() {
        let find = |vars: &[(&str, &str)]| {
            let vars: BTreeMap<String, String> = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let access = AwsAccess::find(|name| vars.get(name).cloned(), CREDENTIALS, CONFIG);
            (access.credentials, access.region)
        };
        assert_eq!(find(&[]), (keys("AKIA1", "s/1+x=", None), Some("us-east-1".to_owned())));
        assert_eq!(find(&[("AWS_PROFILE", "work")]).0, keys("AKIA2", "s2", Some("t2")));
        assert_eq!(find(&[("AWS_PROFILE", "nobody")]), (None, None));
        let all = [
            ("AWS_ACCESS_KEY_ID", "A"),
            ("AWS_SECRET_ACCESS_KEY", " S "),
            ("AWS_SESSION_TOKEN", "T"),
            ("AWS_DEFAULT_REGION", "ap-south-1"),
        ];
        assert_eq!(find(&all), (keys("A", "S", Some("T")), Some("ap-south-1".to_owned())));
        assert_eq!(find(&[("AWS_REGION", "x-1"), ("AWS_DEFAULT_REGION", "y-1")]).1.as_deref(), Some("x-1"));
        // Half a pair is none, and a stray token does not go with other keys.
        assert_eq!(find(&[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SESSION_TOKEN", "T")]).0, keys("AKIA1", "s/1+x=", None));
    }

    #[test]
    fn regions_and_hosts() {
        assert_eq!(region_of("bedrock-runtime.us-east-1.amazonaws.com"), Some("us-east-1"));
        assert_eq!(region_of("bedrock-runtime-fips.us-gov-west-1.amazonaws.com"), Some("us-gov-west-1"));
        assert_eq!(region_of("vpce-1.bedrock-runtime.eu-west-3.vpce.amazonaws.com"), Some("eu-west-3"));
        for host in
            ["127.0.0.1", "bedrock-runtime.us-east-1.example.org", "amazonaws.com", "bedrock-runtime.amazonaws.com"]
        {
            assert_eq!(region_of(host), None, "{host}");
        }
        assert_eq!(default_url("eu-west-1").as_deref(), Some("https://bedrock-runtime.eu-west-1.amazonaws.com"));
        assert_eq!(default_url("cn-north-1").as_deref(), Some("https://bedrock-runtime.cn-north-1.amazonaws.com.cn"));
        for bad in ["", "x", "us-east-1.evil.test/", "us-east-1@evil", "US-EAST-1"] {
            assert_eq!(default_url(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!("{:?}", parse_profiles(CREDENTIALS, CONFIG, "work"));
        assert!(!shown.contains("s2") && !shown.contains("t2"), "{shown}");
    }
}
