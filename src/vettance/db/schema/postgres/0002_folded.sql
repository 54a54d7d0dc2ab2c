-- Texts whose folded case is more than the lower case of ASCII are few; searches of one or two characters go
-- through them apart.
CREATE INDEX term_folded ON term (tenant) WHERE folded IS NOT NULL;
