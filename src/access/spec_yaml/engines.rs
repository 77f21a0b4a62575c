//! Types that run on an engine: what their handlers look like, and their settings (contract §2).

use std::time::Duration;

use super::{Reading, absolute_from};
use crate::access::yaml::fields::{Fields, Item};
use crate::model::engines::{
    FlinkSettings, PythonSettings, SlurmSettings, SparkMode, SparkSettings,
};

/// Settings by type; those of another type than the task's are refused.
pub(super) struct Engines {
    pub(super) python: Option<Box<PythonSettings>>,
    pub(super) spark: Option<Box<SparkSettings>>,
    pub(super) flink: Option<Box<FlinkSettings>>,
    pub(super) slurm: Option<Box<SlurmSettings>>,
}

impl Reading<'_> {
    pub(super) fn engines(&mut self, fields: &mut Fields<'_>, task_type: &str) -> Engines {
        let python = self.settings(fields, "python", "PYTHON", task_type);
        let spark = self.settings(fields, "spark", "SPARK", task_type);
        let flink = self.settings(fields, "flink", "FLINK", task_type);
        let slurm = self.settings(fields, "slurm", "SLURM", task_type);
        Engines {
            python: python.map(|fields| Box::new(self.python(fields))),
            spark: spark.map(|fields| Box::new(self.spark(fields))),
            flink: flink.map(|fields| Box::new(self.flink(fields))),
            slurm: slurm.map(|fields| Box::new(self.slurm(fields))),
        }
    }

    /// The settings under `key`, which belong to one type.
    fn settings<'a>(
        &mut self,
        fields: &mut Fields<'a>,
        key: &'static str,
        of: &str,
        task_type: &str,
    ) -> Option<Fields<'a>> {
        let item = fields.take(key)?;
        if self.context.task_types.contains(of) {
            let message = format!(
                "the configuration defines {of} itself and its run sees no settings; use args"
            );
            self.findings.error(&item.place, message);
        } else if task_type != of && !task_type.is_empty() {
            let message = format!("belongs to taskType {of}, not to {task_type}; remove it");
            self.findings.error(&item.place, message);
        }
        item.map(&mut self.findings)
    }

    fn python(&mut self, mut fields: Fields<'_>) -> PythonSettings {
        let interpreter = fields.take("interpreter").and_then(|i| self.program(&i));
        fields.finish(&mut self.findings);
        PythonSettings { interpreter }
    }

    fn spark(&mut self, mut fields: Fields<'_>) -> SparkSettings {
        let modes = [("client", SparkMode::Client), ("cluster", SparkMode::Cluster)];
        let master = fields.take("master");
        let class = fields.take("class");
        let jars = fields.take("jars").and_then(|i| i.list(&mut self.findings));
        let settings = SparkSettings {
            master: self.word_of(master),
            mode: fields.take("mode").and_then(|i| i.choice(&modes, &mut self.findings)),
            class: self.word_of(class),
            conf: self.labels(fields.take("conf")),
            jars: jars.unwrap_or_default().iter().filter_map(|i| self.file_or_url(i)).collect(),
        };
        fields.finish(&mut self.findings);
        settings
    }

    fn flink(&mut self, mut fields: Fields<'_>) -> FlinkSettings {
        let jar = fields.take("jar").and_then(|i| self.file_or_url(&i));
        let class = fields.take("class");
        let settings = FlinkSettings { jar, class: self.word_of(class) };
        fields.finish(&mut self.findings);
        settings
    }

    fn slurm(&mut self, mut fields: Fields<'_>) -> SlurmSettings {
        let partition = fields.take("partition");
        let least = Duration::from_millis(1);
        let settings = SlurmSettings {
            partition: self.word_of(partition),
            cpus: fields.take("cpus").and_then(|i| i.count(1, &mut self.findings)),
            memory: fields.take("memory").and_then(|i| i.size(&mut self.findings)),
            time: fields.take("time").and_then(|i| i.duration(least, &mut self.findings)),
        };
        fields.finish(&mut self.findings);
        settings
    }

    /// A program by name in `PATH`, or by a path, which starts from the spec file's folder.
    pub(super) fn program(&mut self, item: &Item<'_>) -> Option<String> {
        let text = item.word(&mut self.findings)?;
        Some(if text.contains('/') { absolute_from(&self.base, text) } else { text.to_owned() })
    }

    /// A file, or a place on the network that is left as it is.
    pub(super) fn file_or_url(&mut self, item: &Item<'_>) -> Option<String> {
        let text = item.word(&mut self.findings)?;
        Some(if text.contains("://") { text.to_owned() } else { absolute_from(&self.base, text) })
    }

    /// What Python starts with: a function of a module, or a file.
    pub(super) fn python_entry(&mut self, item: &Item<'_>) -> Option<String> {
        let text = item.word(&mut self.findings)?;
        if text.strip_suffix(".py").is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/')) {
            return Some(absolute_from(&self.base, text));
        }
        let name = |text: &str| {
            text.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let (module, function) = text.split_once(':').unwrap_or((text, ""));
        if module.split('.').all(name) && name(function) {
            return Some(text.to_owned());
        }
        let expected = "module:function, such as jobs.settle:main, or the path of a .py file";
        item.refuse(&mut self.findings, expected)
    }
}
