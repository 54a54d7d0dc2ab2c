"""The life of rule sets over HTTP: checked, proposed, approved, activated, rolled back."""
