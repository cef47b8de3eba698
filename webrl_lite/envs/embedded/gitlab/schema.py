"""The tables of Forgeworks."""

SCHEMA = """
CREATE TABLE gitlab_user (
  id INTEGER PRIMARY KEY, username TEXT NOT NULL UNIQUE, name TEXT NOT NULL, status TEXT NOT NULL,
  bio TEXT NOT NULL, location TEXT NOT NULL, website TEXT NOT NULL, feed_key TEXT NOT NULL,
  joined TEXT NOT NULL
);
CREATE TABLE gitlab_namespace (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, description TEXT NOT NULL,
  user_id INTEGER REFERENCES gitlab_user (id)
);
CREATE TABLE gitlab_project (
  id INTEGER PRIMARY KEY, namespace_id INTEGER NOT NULL REFERENCES gitlab_namespace (id), path TEXT NOT NULL,
  name TEXT NOT NULL, description TEXT NOT NULL, visibility TEXT NOT NULL, stars_before INTEGER NOT NULL,
  forks INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (namespace_id, path)
);
CREATE TABLE gitlab_member (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id),
  user_id INTEGER NOT NULL REFERENCES gitlab_user (id), role TEXT NOT NULL, since TEXT NOT NULL,
  feed_key TEXT NOT NULL, UNIQUE (project_id, user_id)
);
CREATE TABLE gitlab_star (
  project_id INTEGER NOT NULL REFERENCES gitlab_project (id),
  user_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  PRIMARY KEY (project_id, user_id)
);
CREATE TABLE gitlab_follow (
  user_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  target_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  PRIMARY KEY (user_id, target_id)
);
CREATE TABLE gitlab_label (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), name TEXT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE TABLE gitlab_milestone (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), title TEXT NOT NULL,
  start_date TEXT NOT NULL, due_date TEXT NOT NULL, UNIQUE (project_id, title)
);
CREATE TABLE gitlab_issue (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), iid INTEGER NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, author_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  assignee_id INTEGER REFERENCES gitlab_user (id), milestone_id INTEGER REFERENCES gitlab_milestone (id),
  state TEXT NOT NULL, due_date TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  UNIQUE (project_id, iid)
);
CREATE TABLE gitlab_issue_label (
  issue_id INTEGER NOT NULL REFERENCES gitlab_issue (id),
  label_id INTEGER NOT NULL REFERENCES gitlab_label (id),
  PRIMARY KEY (issue_id, label_id)
);
CREATE TABLE gitlab_merge (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), iid INTEGER NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, author_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  assignee_id INTEGER REFERENCES gitlab_user (id), reviewer_id INTEGER REFERENCES gitlab_user (id),
  source_branch TEXT NOT NULL, target_branch TEXT NOT NULL, state TEXT NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, merged_by INTEGER REFERENCES gitlab_user (id), UNIQUE (project_id, iid)
);
CREATE TABLE gitlab_note (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, target_id INTEGER NOT NULL,
  author_id INTEGER NOT NULL REFERENCES gitlab_user (id), body TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE gitlab_commit (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id),
  sha TEXT NOT NULL UNIQUE,
  author_id INTEGER NOT NULL REFERENCES gitlab_user (id), message TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE gitlab_branch (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), name TEXT NOT NULL,
  commit_id INTEGER REFERENCES gitlab_commit (id), UNIQUE (project_id, name)
);
CREATE TABLE gitlab_file (
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES gitlab_project (id), path TEXT NOT NULL,
  content TEXT NOT NULL, commit_id INTEGER REFERENCES gitlab_commit (id), UNIQUE (project_id, path)
);
CREATE TABLE gitlab_todo (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES gitlab_user (id),
  author_id INTEGER NOT NULL REFERENCES gitlab_user (id), target TEXT NOT NULL, target_id INTEGER NOT NULL,
  state TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE INDEX gitlab_commit_project ON gitlab_commit (project_id, created_at);
CREATE INDEX gitlab_note_target ON gitlab_note (target, target_id);
"""
"""Empty text stands for *none* in text columns; NULL for *nobody* and *nothing* in references."""
