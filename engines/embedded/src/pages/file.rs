//! Pages of a data file, read without a map: what is damaged or missing is an error, and never ends
//! the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use keyward_engine::Result;

use super::layout::{FIRST_PAGE, META_BYTES, Meta, PAGE_SIZES};
use crate::error::{at, corrupt};

/// How often the meta pages are read again, if they do not fit together: another process may write
/// one between two reads.
const META_READS_MAX: u32 = 16;

/// A data file that is open for reading page by page.
pub(crate) struct PageFile {
    path: PathBuf,
    file: File,
    page_size: usize,
    length: u64,
}

/// What the two meta pages say.
type Metas = [Result<Meta, String>; 2];

impl PageFile {
    /// Opens a file whose meta pages are both sound, as LMDB needs them, and gives the newer one.
    pub(crate) fn open(path: &Path) -> Result<(Self, Meta)> {
        let file = File::open(path).map_err(at("cannot open", path))?;
        let mut why = String::new();
        for _ in 0..META_READS_MAX {
            match newest(read_metas(&file).map_err(at("cannot read", path))?) {
                Ok(meta) => {
                    let length = file.metadata().map_err(at("cannot read", path))?.len();
                    let page_size = meta.page_size;
                    let path = path.to_owned();
                    return Ok((Self { path, file, page_size, length }, meta));
                }
                Err(reason) => why = reason,
            }
        }
        Err(corrupt(format!("{} is damaged: {why}", path.display())))
    }

    /// Opens a file of which one sound meta page is enough, and gives the sound ones, the newest
    /// first, with what is wrong with the others.
    pub(crate) fn open_damaged(path: &Path) -> Result<(Self, Vec<Meta>, Vec<String>)> {
        let file = File::open(path).map_err(at("cannot open", path))?;
        let length = file.metadata().map_err(at("cannot read", path))?.len();
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for (number, meta) in
            read_metas(&file).map_err(at("cannot read", path))?.into_iter().enumerate()
        {
            match meta {
                Ok(meta) => sound.push(meta),
                Err(reason) => damaged.push(format!("meta page {number}: {reason}")),
            }
        }
        sound.sort_by_key(|meta| std::cmp::Reverse(meta.transaction));
        let Some(newest) = sound.first() else {
            let message = format!("{} cannot be read: {}", path.display(), damaged.join("; "));
            return Err(corrupt(message));
        };
        let page_size = newest.page_size;
        sound.retain(|meta| meta.page_size == page_size);
        if let [first, second] = &sound[..]
            && let Err(reason) = follow_each_other(first, second)
        {
            damaged.push(reason);
        }
        Ok((Self { path: path.to_owned(), file, page_size, length }, sound, damaged))
    }

    /// The meta page of a transaction, unless a later one has replaced it meanwhile.
    pub(crate) fn meta_of(&self, transaction: u64) -> Result<Option<Meta>> {
        let read = || read_metas(&self.file).map_err(at("cannot read", &self.path));
        let find =
            |metas: Metas| metas.into_iter().flatten().find(|meta| meta.transaction == transaction);
        // The same twice, so that it was not being written.
        let found = find(read()?);
        Ok(if found == find(read()?) { found } else { None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn page_size(&self) -> usize {
        self.page_size
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// How many whole pages the file has.
    pub(super) fn pages(&self) -> u64 {
        self.length / self.page_size as u64
    }

    /// The size that the file has if its last pages are in use.
    pub(crate) fn expected_length(&self, meta: &Meta) -> u64 {
        (meta.last_page + 1).saturating_mul(self.page_size as u64)
    }

    /// One page.
    pub(super) fn page(&self, number: u64) -> Result<Vec<u8>, String> {
        self.bytes(number, 0, self.page_size)
    }

    /// Bytes from some offset in a page on.
    pub(super) fn bytes(&self, page: u64, from: usize, length: usize) -> Result<Vec<u8>, String> {
        let start = page.checked_mul(self.page_size as u64).map(|start| start + from as u64);
        let start = start.filter(|start| start.saturating_add(length as u64) <= self.length);
        let start = start.ok_or("it lies beyond the end of the file")?;
        let mut bytes = vec![0; length];
        let read = self.file.read_exact_at(&mut bytes, start);
        read.map(|()| bytes).map_err(|error| format!("it cannot be read: {error}"))
    }
}

/// The newer of two sound meta pages.
fn newest(metas: Metas) -> Result<Meta, String> {
    let [first, second] = metas;
    let first = first.map_err(|reason| format!("meta page 0: {reason}"))?;
    let second = second.map_err(|reason| format!("meta page 1: {reason}"))?;
    if first.page_size != second.page_size {
        return Err("its meta pages name two page sizes".to_owned());
    }
    follow_each_other(&first, &second)?;
    Ok(if second.transaction > first.transaction { second } else { first })
}

/// Transactions write the meta pages in turn, each only after the one before is durable.
fn follow_each_other(first: &Meta, second: &Meta) -> Result<(), String> {
    let (first, second) = (first.transaction, second.transaction);
    match first.abs_diff(second) {
        0 | 1 => Ok(()),
        _ => Err(format!("its meta pages name the transactions {first} and {second}")),
    }
}

fn read_metas(file: &File) -> io::Result<Metas> {
    let read = |number: u64, page_size: usize| -> io::Result<Result<Meta, String>> {
        let mut bytes = vec![0; META_BYTES];
        let read = file.read_at(&mut bytes, number * page_size as u64)?;
        bytes.truncate(read);
        let meta = Meta::read(&bytes, number);
        Ok(meta.and_then(|meta| match number == 0 || meta.page_size == page_size {
            true => Ok(meta),
            false => Err(format!("its page size is {}", meta.page_size)),
        }))
    };
    let first = read(0, 0)?;
    let second = match &first {
        Ok(first) => read(1, first.page_size)?,
        // Without the first one, the page size is the one at which a second one is found.
        Err(_) => {
            let sizes = (0..).map(|power| PAGE_SIZES.start() << power);
            let mut found = Err("it is missing".to_owned());
            for size in sizes.take_while(|size| PAGE_SIZES.contains(size)) {
                found = read(FIRST_PAGE - 1, size)?;
                if found.is_ok() {
                    break;
                }
            }
            found
        }
    };
    Ok([first, second])
}
