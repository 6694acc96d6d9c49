//! The callback macros as the server uses them: from another crate, with their lists complete and of the right kind.

use custom_methods::{Direction, METHODS, MethodKind};
use lsp_types::notification::Notification;
use lsp_types::request::Request;

macro_rules! request_names {
    ([$names:ident] $($method:ty,)*) => { $names.extend([$( <$method as Request>::METHOD ),*]) };
}

macro_rules! notification_names {
    ([] $($method:ty,)*) => { vec![$( <$method as Notification>::METHOD ),*] };
}

fn listed(kind: MethodKind, direction: Direction) -> Vec<&'static str> {
    METHODS.iter().filter(|info| info.kind == kind && info.direction == direction).map(|info| info.name).collect()
}

#[test]
fn requests_of_both_sides() {
    let mut from_client = Vec::new();
    custom_methods::for_each_client_request!(request_names, from_client);
    assert_eq!(from_client, listed(MethodKind::Request, Direction::ClientToServer));
    assert_eq!(from_client.len(), 26);

    let mut from_server = Vec::new();
    custom_methods::for_each_server_request!(request_names, from_server);
    assert_eq!(from_server, listed(MethodKind::Request, Direction::ServerToClient));
    assert_eq!(from_server.len(), 4);
}

#[test]
fn notifications_of_both_sides() {
    let from_client = custom_methods::for_each_client_notification!(notification_names);
    assert_eq!(from_client, listed(MethodKind::Notification, Direction::ClientToServer));
    assert_eq!(from_client.len(), 14);

    let from_server = custom_methods::for_each_server_notification!(notification_names);
    assert_eq!(from_server, listed(MethodKind::Notification, Direction::ServerToClient));
    assert_eq!(from_server.len(), 13);
}
