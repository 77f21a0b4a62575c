//! Keys of contract §4 that later versions use: their shape is checked, nothing else.

use super::Reading;
use crate::access::yaml::fields::{Fields, Item};
use crate::model::instance::InstanceState;

impl Reading {
    /// Checks the shape of what is not in force yet, and says so.
    pub(super) fn later_keys(&mut self, fields: &mut Fields<'_>) {
        if let Some(item) = fields.take("access") {
            self.not_in_force("access", &item);
            self.access(&item);
        }
        for (key, parts) in
            [("rateLimit", ["perSecond", "burst"]), ("connections", ["max", "perUid"])]
        {
            let Some(item) = fields.take(key) else { continue };
            self.not_in_force(key, &item);
            let Some(mut counts) = item.map(&mut self.findings) else { continue };
            for part in parts {
                let count = counts.take(part);
                count.and_then(|i| i.count(1, &mut self.findings));
            }
            counts.finish(&mut self.findings);
        }
        if let Some(item) = fields.take("reserveBytes") {
            self.not_in_force("reserveBytes", &item);
            item.size(&mut self.findings);
        }
        if let Some(item) = fields.take("hooks") {
            self.not_in_force("hooks", &item);
            self.hooks(&item);
        }
    }

    pub(super) fn not_in_force(&mut self, key: &str, item: &Item<'_>) {
        let message = format!("{key} is checked but not in force in this version yet");
        self.findings.warning(&item.place, message);
    }

    fn access(&mut self, item: &Item<'_>) {
        let Some(mut roles) = item.map(&mut self.findings) else { return };
        for role in ["admins", "operators", "viewers"] {
            let Some(item) = roles.take(role) else { continue };
            let Some(mut who) = item.map(&mut self.findings) else { continue };
            self.people(&mut who);
            if role == "operators" {
                let owners = who.take("owners").and_then(|i| i.pairs(&mut self.findings));
                for (_, _, owner) in owners.unwrap_or_default() {
                    let Some(mut who) = owner.map(&mut self.findings) else { continue };
                    self.people(&mut who);
                    who.finish(&mut self.findings);
                }
            }
            who.finish(&mut self.findings);
        }
        roles.finish(&mut self.findings);
    }

    fn people(&mut self, fields: &mut Fields<'_>) {
        for key in ["users", "groups"] {
            self.words(fields.take(key));
        }
    }

    fn words(&mut self, item: Option<Item<'_>>) {
        for item in item.and_then(|i| i.list(&mut self.findings)).unwrap_or_default() {
            item.word(&mut self.findings);
        }
    }

    fn hooks(&mut self, item: &Item<'_>) {
        let states = [
            ("SUCCEEDED", InstanceState::Succeeded),
            ("FAILED", InstanceState::Failed),
            ("TIMEOUT", InstanceState::Timeout),
            ("CANCELLED", InstanceState::Cancelled),
        ];
        for hook in item.list(&mut self.findings).unwrap_or_default() {
            let Some(mut fields) = hook.map(&mut self.findings) else { continue };
            let on = fields.need("on", &mut self.findings);
            for state in on.and_then(|i| i.list(&mut self.findings)).unwrap_or_default() {
                state.choice(&states, &mut self.findings);
            }
            self.words(fields.take("owners"));
            let run = fields.need("run", &mut self.findings);
            self.words(run);
            fields.finish(&mut self.findings);
        }
    }
}
