-- The rows of two sessions as schema version 1 keeps them: one has ended, the other waits for a signal and has another one pending.
-- Written by the build that had this version, and never edited.
INSERT INTO session VALUES ('ses-ended', '5', '1795396715902224', 'alpha', NULL, NULL, E'{"agent":{"name":"alpha","version":"1"},"seed":335515093,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795396715881,"input":"\\"end\\""}', '2253584583');
INSERT INTO session VALUES ('ses-waiting', '5', '1795396715975297', 'beta', NULL, NULL, E'{"agent":{"name":"beta","version":"1"},"seed":1405653762,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795396715974,"input":"\\"wait\\""}', '2987211427');
INSERT INTO state VALUES ('5', 'ses-ended', '1795396715902225', 'completed', '1', 'alpha', '{"status":"completed","waits":[],"nextSeq":5,"entryCount":1,"turn":0,"inbox":0,"output":"1","children":0,"updatedAt":1795396715951,"endedAt":1795396715951}', '408377420', NULL, NULL, NULL, NULL, '1795396715902332', 'process 16599 (11kkjha)', 'Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-waiting', '1795396715975300', 'waiting', '0', 'beta', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"updatedAt":1795396716981}', '1802122353', NULL, NULL, NULL, NULL, '1795396715975338', NULL, '-Infinity', 'Infinity', '0', NULL);
INSERT INTO journal VALUES ('5', 'ses-ended', '0', '2', '1795396715881', NULL, '{"type":"started","at":1795396715879,"seq":0}
{"type":"schedule_task","kind":"step","hash":"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU","seq":1,"id":0}', '1700070783');
INSERT INTO journal VALUES ('5', 'ses-ended', '2', '3', '1795396715951', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795396715950,"seq":2,"payload":1}
{"type":"append_entry","role":"user","hash":"rEUItkCTZbodvWOBuTU0AGOVGtHG6mnIHr7MozUIdu8","seq":3,"id":1}
{"type":"complete","seq":4,"id":2,"payload":1}', '2149702376');
INSERT INTO journal VALUES ('5', 'ses-waiting', '0', '2', '1795396715974', NULL, '{"type":"started","at":1795396715974,"seq":0}
{"type":"schedule_task","kind":"step","hash":"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU","seq":1,"id":0}', '79693401');
INSERT INTO journal VALUES ('5', 'ses-waiting', '2', '3', '1795396715978', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795396715977,"seq":2,"payload":1}
{"type":"append_entry","role":"user","hash":"rEUItkCTZbodvWOBuTU0AGOVGtHG6mnIHr7MozUIdu8","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '776079055');
INSERT INTO entry VALUES ('5', 'ses-ended', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795396715951}', '"kept"', NULL, '3366212581');
INSERT INTO entry VALUES ('5', 'ses-waiting', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795396715978}', '"kept"', NULL, '3056250242');
INSERT INTO signal VALUES ('5', 'ses-waiting', '1', 'sig-1', 'other', '1795396716981', '7', NULL, '1818221948');
INSERT INTO seen VALUES ('5', 'ses-waiting', 'i:sig-1');
