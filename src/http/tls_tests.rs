//! Certificates of the user's, against a real TLS server in this process. The keys under
//! `tests/support/tls` belong to nobody; they are valid until 2100.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::*;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls").join(name)
}

/// Answers one connection, if it can; returns its address.
fn serve(demand_certificate: bool) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = vec![CertificateDer::from_pem_file(fixture("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture("ca.pem")).unwrap()).unwrap();
    let builder = ServerConfig::builder();
    let builder = if demand_certificate {
        builder.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
        // A client that refuses us, or that we refuse, is the point of some tests.
        if stream.read(&mut [0; 4096]).is_ok() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    format!("https://localhost:{port}/")
}

async fn answer(demand_certificate: bool, authority: bool, identity: bool) -> Option<String> {
    let mut config = Config::default();
    config.network.ca_cert_file = authority.then(|| fixture("ca.pem"));
    config.network.client_cert = identity.then(|| fixture("client.pem"));
    config.network.client_key = identity.then(|| fixture("client.key"));
    let request = Client::configured(&config).request(Method::GET, &serve(demand_certificate)).unwrap();
    let response = tokio::time::timeout(Duration::from_secs(20), request.send()).await.unwrap().ok()?;
    response.text().await.ok()
}

#[tokio::test]
async fn an_authority_of_the_users_is_believed_and_a_stranger_is_not() {
    assert_eq!(answer(false, false, false).await, None);
    assert_eq!(answer(false, true, false).await.as_deref(), Some("ok"));
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_it() {
    assert_eq!(answer(true, true, false).await, None);
    assert_eq!(answer(true, true, true).await.as_deref(), Some("ok"));
}
