//! A real full disk: a small tmpfs when this can be mounted, skipped loudly otherwise.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{assert_clean, counters};
use stockade::{Error, Readiness, Stockade};

/// Unmounts when dropped.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(folder: &Path) -> Option<Self> {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m", "stockade-test"])
            .arg(folder)
            .output()
            .ok()?;
        done.status.success().then(|| Self(folder.into()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()), "umount failed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_and_is_given_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::tmpfs(folder.path()) else {
        eprintln!("SKIPPED: a tmpfs cannot be mounted here (needs root), so the full disk was not tested");
        return;
    };
    let ballast = folder.path().join("ballast");
    std::fs::write(&ballast, vec![0_u8; 3 << 20]).unwrap();
    let data = folder.path().join("data");
    let store = Stockade::open(&data).await.unwrap();
    store.set_stock("c", "A/1", 10_000_000).await.unwrap();
    let mut sold = 0_u64;
    let mut n = 0_u64;
    let failed = loop {
        let calls = (0..64).map(|k| {
            let store = store.clone();
            let id = format!("o-{:09}", n + k);
            tokio::spawn(async move {
                store
                    .deduct(&id, &format!("owner-{id}"))
                    .line("A/1", 1)
                    .await
                    .map(|_| ())
            })
        });
        let calls: Vec<_> = calls.collect();
        n += 64;
        let mut failed = None;
        for call in calls {
            match call.await.unwrap() {
                Ok(()) => sold += 1,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(failed) = failed {
            break failed;
        }
        assert!(n < 1_000_000, "the disk did not fill up");
    };
    match &failed {
        Error::Unavailable { why } => assert!(why.contains("full"), "{why}"),
        other => panic!("{other}"),
    }
    std::fs::remove_file(&ballast).unwrap();
    let waiting = async {
        while store.health().readiness != Readiness::Ready {
            assert!(matches!(store.health().readiness, Readiness::Recovering { .. }));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap();
    assert_eq!(counters(&store, "A/1").await.sold, sold);
    store.deduct("after", "u").line("A/1", 1).await.unwrap();
    assert_eq!(counters(&store, "A/1").await.sold, sold + 1);
    assert_clean(&store).await;
    store.close().await.unwrap();
}
