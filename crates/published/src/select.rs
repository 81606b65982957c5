//! Which tables a user means: `phanse2000`, `phanse2000/5.1`, and then `5.2` for another of the same publication.

use crate::data::{Publication, Table};

/// A name that is no publication or no table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SelectError {
    /// No such publication.
    #[error("no published data called \"{name}\"; there are: {}", known.join(", "))]
    UnknownPublication {
        /// The name that was asked for.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// No such table in it.
    #[error("{publication} has no table \"{id}\"; it has: {}", known.join(", "))]
    UnknownTable {
        /// The publication.
        publication: String,
        /// The name that was asked for.
        id: String,
        /// The known names.
        known: Vec<String>,
    },
}

/// The tables that `names` mean, in the order asked for, each once. Without names, all.
///
/// A name is a publication (all its tables), `PUBLICATION/TABLE`, or the bare id of a table of the
/// publication named before it.
///
/// # Errors
///
/// When a name is neither a publication nor, after one, a table of it.
pub fn select<'a>(
    publications: &'a [Publication],
    names: &[String],
) -> Result<Vec<(&'a Publication, &'a Table)>, SelectError> {
    let mut chosen: Vec<(&Publication, &Table)> = Vec::new();
    let mut current: Option<&Publication> = None;
    for name in names {
        let (publication, id) = match name.split_once('/') {
            Some((publication, id)) => (find(publications, publication)?, Some(id)),
            None => match (find(publications, name), current) {
                (Ok(publication), _) => (publication, None),
                (Err(_), Some(publication)) => (publication, Some(name.as_str())),
                (Err(error), None) => return Err(error),
            },
        };
        current = Some(publication);
        let tables = match id {
            None => publication.tables.iter().collect(),
            Some(id) => vec![publication.table(id).ok_or_else(|| SelectError::UnknownTable {
                publication: publication.key.clone(),
                id: id.to_owned(),
                known: publication.tables.iter().map(|table| table.id.clone()).collect(),
            })?],
        };
        for table in tables {
            let same = |(p, t): &(&Publication, &Table)| p.key == publication.key && t.id == table.id;
            if !chosen.iter().any(same) {
                chosen.push((publication, table));
            }
        }
    }
    if names.is_empty() {
        chosen = publications.iter().flat_map(|p| p.tables.iter().map(move |table| (p, table))).collect();
    }
    Ok(chosen)
}

fn find<'a>(publications: &'a [Publication], name: &str) -> Result<&'a Publication, SelectError> {
    publications.iter().find(|publication| publication.key == name).ok_or_else(|| SelectError::UnknownPublication {
        name: name.to_owned(),
        known: publications.iter().map(|publication| publication.key.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Result<Vec<String>, SelectError> {
        let publications = crate::publications().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        select(&publications, &names).map(|chosen| chosen.iter().map(|(p, t)| format!("{}/{}", p.key, t.id)).collect())
    }

    #[test]
    fn bare_ids_belong_to_the_publication_before_them() {
        assert_eq!(
            ids(&["phanse2000/5.1", "5.2", "sun1998/5.1", "5.3"]).unwrap(),
            ["phanse2000/5.1", "phanse2000/5.2", "sun1998/5.1", "sun1998/5.3"]
        );
    }

    #[test]
    fn a_bare_publication_means_all_its_tables_and_none_means_everything() {
        assert_eq!(ids(&["ano2002"]).unwrap().len(), 9);
        assert_eq!(ids(&[]).unwrap().len(), 119);
    }

    #[test]
    fn a_table_named_twice_comes_once() {
        assert_eq!(ids(&["phanse2000/5.1", "5.1"]).unwrap(), ["phanse2000/5.1"]);
    }

    #[test]
    fn unknown_names_are_told_what_there_is() {
        assert_eq!(
            ids(&["phanse"]).unwrap_err().to_string(),
            "no published data called \"phanse\"; there are: ano2002, brouer2005, kalyanaraman1999, phanse2000, \
             sun1998, ced2006, custura2020, deschepper2016, hock2017, starlink2025, ware2019, white2019"
        );
        let error = ids(&["kalyanaraman1999/7"]).unwrap_err().to_string();
        assert!(error.starts_with("kalyanaraman1999 has no table \"7\"; it has: text-1, "), "{error}");
        assert!(ids(&["5.1"]).is_err(), "an id needs a publication before it");
    }
}
