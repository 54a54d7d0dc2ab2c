-- Feedback is counted in the rollup, by the time and the outcome of its event: `label:` and the label are the code.
INSERT INTO rollup (tenant, width_s, start_s, code, evaluated, review, block, score_sum)
SELECT decision.tenant, width.s, decision.occurred_at_ms / 1000 - decision.occurred_at_ms / 1000 % width.s,
    'label:' || feedback.label, COUNT(*), SUM(CASE WHEN decision.decision = 'REVIEW' THEN 1 ELSE 0 END),
    SUM(CASE WHEN decision.decision = 'BLOCK' THEN 1 ELSE 0 END), 0
FROM feedback
JOIN decision ON decision.id = feedback.target AND decision.tenant = feedback.tenant
CROSS JOIN (SELECT 60 AS s UNION ALL SELECT 86400) AS width
GROUP BY 1, 2, 3, 4;
