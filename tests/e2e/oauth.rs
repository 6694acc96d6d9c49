//! Logging in with a client of the user's own: browser, code, renewal and logout, against an
//! authorization server that the tests control. Tokens are used, kept apart, and shown to nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use custom_methods::Empty;
use custom_methods::methods::{ChatPrompt, ProvidersList, ProvidersLogin, ProvidersLoginInput, ProvidersLogout};
use custom_methods::providers::{
    ProviderAuthStatus, ProviderAuthType, ProviderStatus, ProvidersLoginInputParams, ProvidersLoginParams,
    ProvidersLoginResult, ProvidersLogoutParams,
};
use serde_json::{Value, json};

use crate::authority::{Authority, log_in};
use crate::mock_llm::MockLlm;
use crate::peer::outline::{outline, text_by};
use crate::server::{Builder, TestServer, prompt};
use crate::web::{self, Request, Response, Web};

const SECRETS: [&str; 5] = ["token-1", "token-2", "token-3", "refresh-", "s3cret-of-the-client"];

/// A provider behind a login, and its authorization server.
struct Vendor {
    authority: Mutex<Authority>,
    requests: Mutex<Vec<Request>>,
    web: Web,
    /// What every server needs to have, and no test here asks.
    other: MockLlm,
}

impl Vendor {
    async fn start() -> Arc<Self> {
        let other = MockLlm::start().await;
        let (sender, receiver) = std::sync::mpsc::channel::<Arc<Self>>();
        let receiver = Mutex::new((receiver, None::<Arc<Self>>));
        let web = Web::serve(move |request| {
            let mut place = receiver.lock().unwrap();
            let (receiver, vendor) = &mut *place;
            vendor.get_or_insert_with(|| receiver.recv().unwrap()).answer(request)
        })
        .await;
        let authority = Authority {
            clients: ["mine".to_owned()].into(),
            client_secret: Some("s3cret-of-the-client".to_owned()),
            token_life: Some(3600),
            ..Authority::default()
        };
        let vendor = Arc::new(Self { authority: authority.into(), requests: Mutex::default(), web, other });
        sender.send(Arc::clone(&vendor)).unwrap();
        vendor
    }

    fn authority(&self) -> std::sync::MutexGuard<'_, Authority> {
        self.authority.lock().unwrap()
    }

    /// The tokens that came with requests for answers.
    fn prompted_with(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let asked = requests.iter().filter(|request| request.method == "POST" && request.path.starts_with("/v1/"));
        asked.map(|request| request.header("authorization").to_owned()).collect()
    }

    fn answer(&self, request: Request) -> Response {
        self.requests.lock().unwrap().push(request.clone());
        let mut authority = self.authority.lock().unwrap();
        let events = |events: &[Value]| {
            let text = events
                .iter()
                .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message")));
            Response::text("text/event-stream", text.collect())
        };
        match request.path.as_str() {
            "/authorize" => return authority.authorize(&request),
            "/token" => return authority.token(&request),
            "/device" => return authority.device(&request, &self.web.url("/enter")),
            _ if !authority.lets_in(&request) => {
                let shown = request.header("authorization").to_owned();
                let answer = json!({"error": {"message": format!("{shown} is not good")}});
                return Response { status: 401, ..Response::json(&answer) };
            }
            _ => {}
        }
        match request.path.as_str() {
            "/v1/models" => Response::json(&json!({"data": [{"id": "m"}]})),
            "/v1/chat/completions" => {
                events(&[json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})])
            }
            "/v1/messages" => events(&[
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
                json!({"type": "message_stop"}),
            ]),
            _ => Response::empty(404),
        }
    }

    /// A server with this provider, by the name of `mine`.
    fn server(&self, api: &str) -> Builder {
        let url = self.web.url(if api == "anthropic" { "" } else { "/v1" });
        TestServer::with(&self.other).config(json!({"providers": {"mine": {"api": api, "url": url, "oauth": {
            "clientId": "mine",
            "clientSecret": "s3cret-of-the-client",
            "authorizationUrl": self.web.url("/authorize"),
            "tokenUrl": self.web.url("/token"),
            "scopes": ["chat", "offline"],
            "authorizationParams": {"prompt": "consent", "state": "mine"},
        }}}}))
    }
}

fn by(method: &str) -> ProvidersLoginParams {
    ProvidersLoginParams { provider: "mine".into(), method: Some(method.into()) }
}

async fn page(server: &mut TestServer) -> String {
    match server.request::<ProvidersLogin>(by("oauth")).await {
        ProvidersLoginResult::Authorize(step) => step.url,
        other => panic!("{other:?}"),
    }
}

async fn mine(server: &mut TestServer) -> ProviderStatus {
    let listed = server.request::<ProvidersList>(Empty).await;
    listed.providers.into_iter().find(|provider| provider.id == "mine").expect("it is listed")
}

/// Says yes in the browser, and waits until the client has heard of it.
async fn say_yes(server: &mut TestServer, address: &str) -> Vec<Value> {
    let (status, page) = log_in(address).await;
    assert!(status == 200 && page.contains("logged in"), "{page}");
    server.everything_until("the provider is there", |message| message["method"] == "providers/updated").await
}

async fn ask(server: &mut TestServer, chat: &str) -> Vec<Value> {
    let mut asked = prompt(Some(chat), "hi");
    asked.model = Some("mine/m".into());
    server.start::<ChatPrompt>(asked);
    server.collect_turn(chat).await
}

fn shows_no_secret(messages: &[Value]) {
    for message in messages {
        let text = message.to_string();
        assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
    }
}

#[tokio::test]
async fn a_login_by_browser_from_the_first_page_to_the_logout() {
    let vendor = Vendor::start().await;
    let mut server = vendor.server("openai-chat").start().await;
    let before = mine(&mut server).await;
    assert_eq!((before.auth.status, before.models.len()), (ProviderAuthStatus::Unauthenticated, 0));
    let step = server.request::<ProvidersLogin>(ProvidersLoginParams { provider: "mine".into(), method: None }).await;
    let ProvidersLoginResult::ChooseMethod(choice) = step else { panic!("{step:?}") };
    let keys: Vec<&str> = choice.methods.iter().map(|method| method.key.as_str()).collect();
    assert_eq!(keys, ["oauth", "api-key"]);
    let address = page(&mut server).await;
    let asked = web::pairs(address.split_once('?').unwrap().1);
    assert_eq!((asked["scope"].as_str(), asked["prompt"].as_str()), ("chat offline", "consent"));
    assert!(asked["redirect_uri"].starts_with("http://127.0.0.1:") && asked["state"] != "mine", "{asked:?}");
    assert_eq!((asked["code_challenge"].len(), asked["code_challenge_method"].as_str()), (43, "S256"));
    let told = say_yes(&mut server, &address).await;
    assert!(told[0]["params"]["chat"]["models"].to_string().contains("mine/m"), "{told:?}");
    let now = mine(&mut server).await;
    assert_eq!((now.auth.status, now.auth.kind), (ProviderAuthStatus::Authenticated, Some(ProviderAuthType::Oauth)));
    let first = ask(&mut server, "c").await;
    assert_eq!(text_by("assistant", &first), "ok");
    // The token is taken back, and replaced without a word.
    vendor.authority().tokens.clear();
    let second = ask(&mut server, "c").await;
    assert_eq!(text_by("assistant", &second), "ok");
    assert_eq!(vendor.prompted_with(), ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
    let file = server.dirs.eca.data.join("provider-auth.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains("token-2"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let shown = [server.turn("c", "/config").await, server.turn("c", "/doctor").await].concat();
    assert!(text_by("system", &shown).contains("**mine**: logged in"), "{}", text_by("system", &shown));
    server.request::<ProvidersLogout>(ProvidersLogoutParams { provider: "mine".into() }).await;
    let after = mine(&mut server).await;
    assert_eq!((after.auth.status, after.models.len()), (ProviderAuthStatus::Unauthenticated, 0));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("token-"));
    shows_no_secret(&[told, first, second, shown].concat());
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_login_outlives_the_server_and_is_renewed_once_for_all() {
    let vendor = Vendor::start().await;
    vendor.authority().token_life = Some(30);
    let mut server = vendor.server("anthropic").start().await;
    let address = page(&mut server).await;
    say_yes(&mut server, &address).await;
    let dirs = Arc::clone(&server.dirs);
    server.ignore_rest();
    server.finish().await;
    vendor.authority().token_life = Some(3600);
    vendor.authority().refreshes = 0;
    let silent = json!({"providers": {"mine": {"fetchModels": false}}});
    let mut server = vendor.server("anthropic").config(silent).dirs(&dirs).start().await;
    // What is about to end is replaced before it is used, and for ten chats as for one.
    for chat in 0..10 {
        let mut asked = prompt(Some(&chat.to_string()), "hi");
        asked.model = Some("mine/m".into());
        server.start::<ChatPrompt>(asked);
    }
    for _ in 0..10 {
        let is_over = |message: &Value| message["params"]["content"]["state"] == "finished";
        shows_no_secret(&server.everything_until("all are answered", is_over).await);
    }
    assert_eq!(vendor.authority().refreshes, 1);
    let with = vendor.prompted_with();
    assert!(with.len() == 10 && with.iter().all(|header| *header == with[0]), "{with:?}");
    assert!(vendor.requests.lock().unwrap().iter().all(|request| request.header("x-api-key").is_empty()));
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_login_that_has_ended_says_so() {
    let vendor = Vendor::start().await;
    let mut server = vendor.server("openai-chat").start().await;
    let address = page(&mut server).await;
    say_yes(&mut server, &address).await;
    vendor.authority().refuses_refresh = true;
    vendor.authority().tokens.clear();
    let failed = ask(&mut server, "c").await;
    assert!(text_by("system", &failed).contains("Log in with `/login mine`"), "{}", text_by("system", &failed));
    shows_no_secret(&failed);
    assert_eq!(mine(&mut server).await.auth.status, ProviderAuthStatus::Expired);
    // What cannot be renewed at all is refused in the provider's words, without the token in them.
    vendor.authority().forgets_refresh = true;
    let address = page(&mut server).await;
    say_yes(&mut server, &address).await;
    let status = mine(&mut server).await;
    assert_eq!(status.auth.status, ProviderAuthStatus::Expiring);
    assert!(status.auth.expires_at.is_some());
    vendor.authority().tokens.clear();
    let refused = ask(&mut server, "d").await;
    let text = text_by("system", &refused);
    assert!(text.contains("**** is not good") && text.contains("/login mine"), "{text}");
    shows_no_secret(&refused);
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_login_by_chat_waits_for_the_browser_takes_what_is_pasted_and_can_be_cancelled() {
    let vendor = Vendor::start().await;
    let mut server = vendor.server("openai-chat").start().await;
    let address = |messages: &[Value]| {
        let text = text_by("system", messages);
        let start = text.find('<').expect("an address") + 1;
        text[start..].split('>').next().unwrap().to_owned()
    };
    let asked = server.turn("c", "/login mine").await;
    assert!(text_by("system", &asked).contains("`browser`"), "{}", text_by("system", &asked));
    let opened = server.turn("c", "browser").await;
    assert!(outline(&opened).contains(&"status login".to_owned()), "{:?}", outline(&opened));
    let cancelled = server.turn("c", "cancel").await;
    assert!(text_by("system", &cancelled).contains("cancelled"));
    let (_, location, _) = web::get(&address(&opened)).await;
    let place = location.unwrap();
    let host = place.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    assert!(tokio::net::TcpStream::connect(host).await.is_err(), "nobody listens any more");

    // The browser comes back, and the chat goes on by itself.
    server.turn("c", "/login mine").await;
    let opened = server.turn("c", "browser").await;
    log_in(&address(&opened)).await;
    let over = server.collect_turn("c").await;
    assert!(text_by("system", &over).contains("You are logged in at mine"), "{over:?}");
    assert!(outline(&over).contains(&"status idle".to_owned()), "{:?}", outline(&over));

    // The browser cannot come back: the address it ended at is pasted.
    server.turn("c", "/login mine").await;
    let opened = server.turn("c", "browser").await;
    let (_, location, _) = web::get(&address(&opened)).await;
    let wrong = server.turn("c", "http://127.0.0.1/auth/callback?code=code-9&state=guessed").await;
    assert!(text_by("system", &wrong).contains("does not belong to this login"), "{}", text_by("system", &wrong));
    let pasted = server.turn("c", &location.unwrap()).await;
    assert_eq!(text_by("user", &pasted), "*****\n");
    assert!(text_by("system", &pasted).contains("You are logged in at mine"), "{}", text_by("system", &pasted));
    let answered = ask(&mut server, "c").await;
    assert_eq!(text_by("assistant", &answered), "ok");
    shows_no_secret(&[opened, over, wrong, pasted, answered].concat());
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_code_for_another_device_is_shown_and_waited_for() {
    let vendor = Vendor::start().await;
    vendor.authority().device_patience = 1;
    let device = json!({"providers": {"mine": {"oauth": {
        "deviceAuthorizationUrl": vendor.web.url("/device"), "authorizationUrl": null}}}});
    let mut server = vendor.server("openai-chat").config(device).start().await;
    let ProvidersLoginResult::DeviceCode(step) = server.request::<ProvidersLogin>(by("device")).await else {
        panic!("a code")
    };
    assert_eq!((step.code.as_str(), step.url), ("ABCD-EFGH", vendor.web.url("/enter")));
    let told = server.everything_until("the login", |message| message["method"] == "providers/updated").await;
    shows_no_secret(&told);
    assert_eq!(vendor.authority().device_polls, 2);
    assert_eq!(text_by("assistant", &ask(&mut server, "c").await), "ok");
    vendor.authority().denies = true;
    server.request::<ProvidersLogin>(by("device")).await;
    let said = server.find("a word about it", |message| message["method"] == "$/showMessage").await;
    assert!(said["params"]["message"].to_string().contains("did not succeed"), "{said}");
    let refused = server.request_raw("providers/login", Some(json!({"provider": "mine", "method": "oauth"}))).await;
    assert!(refused["error"]["message"].to_string().contains("cannot be logged into"), "{refused}");
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn the_user_may_say_no_and_a_stranger_is_not_heard() {
    let vendor = Vendor::start().await;
    let mut server = vendor.server("openai-chat").start().await;
    let address = page(&mut server).await;
    let asked = web::pairs(address.split_once('?').unwrap().1);
    let (status, _, _) = web::get(&format!("{}?code=code-1&state=guessed", asked["redirect_uri"])).await;
    assert_eq!(status, 400);
    vendor.authority().denies = true;
    let (_, location, _) = web::get(&address).await;
    web::get(&location.unwrap()).await;
    let said = server.find("a word about it", |message| message["method"] == "$/showMessage").await;
    assert!(said["params"]["message"].to_string().contains("not today"), "{said}");
    let late =
        ProvidersLoginInputParams { provider: "mine".into(), data: BTreeMap::from([("code".into(), "x".into())]) };
    let id = server.start::<ProvidersLoginInput>(late);
    let refused = server.response_raw(id).await;
    assert!(refused["error"]["message"].to_string().contains("Begin again"), "{refused}");
    assert_eq!(vendor.authority().issued, 0);
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_workspace_cannot_lead_a_login_elsewhere_and_a_client_must_be_complete() {
    let vendor = Vendor::start().await;
    let hostile = Web::serve(|_| Response::empty(500)).await;
    let builder = vendor.server("openai-chat").config(json!({"providers": {
        "half": {"api": "openai-chat", "url": vendor.web.url("/v1"), "oauth": {"tokenUrl": vendor.web.url("/token")}},
        "plain": {"api": "openai-chat", "url": vendor.web.url("/v1"), "oauth": {
            "clientId": "x", "authorizationUrl": "https://a.example/", "tokenUrl": "http://a.example/token"}},
    }}));
    let workspace = builder.folders().workspace.clone();
    std::fs::create_dir_all(workspace.join(".eca")).unwrap();
    let elsewhere = json!({"providers": {"mine": {"oauth": {
        "tokenUrl": hostile.url("/token"), "authorizationUrl": hostile.url("/authorize"), "clientId": "theirs"}}}});
    std::fs::write(workspace.join(".eca/config.json"), elsewhere.to_string()).unwrap();
    let mut server = builder.start().await;
    let said: String = server.startup.iter().map(Value::to_string).collect();
    let rest = server.turn("c", "/doctor").await;
    let said = format!("{said}{}", text_by("system", &rest));
    assert!(said.contains("providers.half.oauth.clientId is missing"), "{said}");
    assert!(said.contains("providers.plain.oauth.tokenUrl must start with https"), "{said}");
    let address = page(&mut server).await;
    assert!(address.starts_with(&vendor.web.url("/authorize")) && address.contains("client_id=mine"), "{address}");
    say_yes(&mut server, &address).await;
    assert_eq!(vendor.authority().issued, 1);
    server.ignore_rest();
    server.finish().await;
}
