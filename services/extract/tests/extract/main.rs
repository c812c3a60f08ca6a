//! Documents of several programs and languages, and documents that mean harm.

mod compare;
mod detect;
mod fixture;
mod fixtures;
mod hostile;
mod languages;
mod made;
mod pages;
mod random;
mod safe;
mod sandbox;
