-- A message to many subscriptions is delivered to them in pieces, in the order of their ids. What is still to be made:
-- the first subscription without a delivery and the last one there was when the message was written; NULL when every
-- delivery is made. `message_type` and `message_subject` are what its deliveries say.
ALTER TABLE message ADD COLUMN message_type TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN message_subject TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN next_subscription TEXT;
ALTER TABLE message ADD COLUMN last_subscription TEXT;
CREATE INDEX message_fan_out ON message (tenant, id) WHERE next_subscription IS NOT NULL;
