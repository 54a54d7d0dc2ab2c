"""What a release is made of: packages, their trial, bills of materials, licences, vulnerabilities."""
