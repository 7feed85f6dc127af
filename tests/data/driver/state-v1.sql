-- The machine's database as draht wrote it with schema version 1, two holds and one ticket in it.
BEGIN TRANSACTION;
CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        boot_id TEXT NOT NULL,
        event TEXT NOT NULL,
        hold TEXT,
        detail TEXT NOT NULL,
        pid INTEGER NOT NULL,
        uid INTEGER NOT NULL
    ) STRICT;
INSERT INTO "audit" VALUES(1,1000.0,'b1','held','h0','GPU 0 for ada, runc: train --fast',90,1000);
INSERT INTO "audit" VALUES(2,1001.0,'b1','held','h1','GPU 1 for grace, runc: train --fast',91,1000);
CREATE TABLE held_units (
        unit TEXT PRIMARY KEY,
        hold TEXT NOT NULL REFERENCES holds(id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
INSERT INTO "held_units" VALUES('GPU-0/0','h0');
INSERT INTO "held_units" VALUES('GPU-0/1','h0');
INSERT INTO "held_units" VALUES('GPU-1/0','h1');
INSERT INTO "held_units" VALUES('GPU-1/1','h1');
CREATE TABLE holds (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('starting', 'running', 'releasing')),
        engine TEXT NOT NULL,
        container TEXT,
        init_pid INTEGER, init_started INTEGER,
        machine TEXT NOT NULL,
        simulated INTEGER NOT NULL,
        devices TEXT NOT NULL,
        cdi_names TEXT NOT NULL,
        command TEXT NOT NULL,
        uid INTEGER NOT NULL, user TEXT NOT NULL,
        starter_pid INTEGER NOT NULL, starter_started INTEGER NOT NULL,
        boot_id TEXT NOT NULL,
        since REAL NOT NULL
    ) STRICT;
INSERT INTO "holds" VALUES('h0','running','runc','draht-h0',100,5,'test',1,'[{"id":"GPU-0","label":"GPU 0"}]','["draht.dev/gpu=h0-0"]','["train","--fast"]',1000,'ada',0,0,'b1',1000.0);
INSERT INTO "holds" VALUES('h1','running','runc','draht-h1',101,5,'test',1,'[{"id":"GPU-1","label":"GPU 1"}]','["draht.dev/gpu=h1-0"]','["train","--fast"]',1000,'grace',0,0,'b1',1001.0);
CREATE TABLE origin (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO "origin" VALUES('0123456789abcdef');
CREATE TABLE specs (
        path TEXT PRIMARY KEY,
        hold TEXT NOT NULL REFERENCES holds(id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
INSERT INTO "specs" VALUES('/var/run/cdi/draht.dev-gpu_x_h0.json','h0');
INSERT INTO "specs" VALUES('/var/run/cdi/draht.dev-gpu_x_h1.json','h1');
CREATE TABLE waiting (
        ticket INTEGER PRIMARY KEY AUTOINCREMENT,
        demands TEXT NOT NULL,
        command TEXT NOT NULL,
        uid INTEGER NOT NULL, user TEXT NOT NULL,
        pid INTEGER NOT NULL, started INTEGER NOT NULL, boot_id TEXT NOT NULL,
        since REAL NOT NULL,
        deadline REAL
    ) STRICT;
INSERT INTO "waiting" VALUES(1,'[]','["eval"]',1001,'linus',77,3,'b1',1003.0,NULL);
CREATE INDEX held_units_by_hold ON held_units(hold);
CREATE INDEX audit_by_hold ON audit(hold);
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',2);
INSERT INTO "sqlite_sequence" VALUES('waiting',1);
COMMIT;
PRAGMA application_id = 1685217640;
PRAGMA user_version = 1;
