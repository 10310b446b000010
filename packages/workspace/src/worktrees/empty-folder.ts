// `EmptyFolders`: the folders of sessions that begin with no file. Nothing removes a folder but a person.
//
//   - The files of a session are kept as snapshots in a bare repository of Holdfast's own, beside the folders
//     of its project.
//   - The folder of a fork appears in one step, with all files of its snapshot.

import { createHash } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makePrivateFolder } from "@holdfast/system";

import type { FileSnapshot } from "../workspace/capabilities.ts";
import { dropRef } from "./repository.ts";
import { restoreFiles } from "./snapshots/restore-files.ts";
import type { SnapshotPlace } from "./snapshots/snapshot-place.ts";
import { takeSnapshot } from "./snapshots/take-snapshot.ts";
import type { WorktreesOptions } from "./worktrees.ts";
import { namesOf } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

/** The empty folders of one user. A project is the folder that a session was started in. */
export class EmptyFolders {
  readonly #folder: string;
  readonly #settings: GitSettings;

  constructor({ folder, environment }: WorktreesOptions) {
    this.#folder = folder;
    this.#settings = environment === undefined ? {} : { environment };
  }

  pathOf(project: string, session: string): string {
    return namesOf(this.#ofProject(project), session).path;
  }

  /**
   * Makes the folder, or finds it with the files of the session.
   *
   * @param begin the files that a fork begins with. @throws NotFoundError `file_not_found` when they are
   *   gone.
   */
  async open(project: string, session: string, begin?: FileSnapshot): Promise<string> {
    const path = this.pathOf(project, session);
    if (typeof begin?.commit === "string" && !existsSync(path))
      await this.#restore(project, session, begin.commit);
    makePrivateFolder(path);
    return path;
  }

  /** Keeps the files of a session as they are. A second call without a change in between keeps nothing more. */
  async keepFiles(project: string, session: string): Promise<FileSnapshot> {
    const place = this.#place(project, session);
    await this.#makeRepository(place.bare);
    return takeSnapshot(place, this.#settings);
  }

  /** Forgets the snapshots of a session, if it has some. Its folder stays. */
  async dropSnapshots(project: string, session: string): Promise<void> {
    const { bare, ref, index } = this.#place(project, session);
    if (!existsSync(bare)) return;
    await dropRef(ref, bare, this.#settings, { GIT_DIR: bare });
    rmSync(index, { force: true });
  }

  async #restore(project: string, session: string, commit: string): Promise<void> {
    const place = this.#place(project, session);
    const draft = `${place.root}+begins`; // No session's folder has this name.
    rmSync(draft, { recursive: true, force: true });
    makePrivateFolder(draft);
    await this.#makeRepository(place.bare);
    await restoreFiles({ ...place, root: draft }, null, commit, this.#settings);
    const env = { GIT_DIR: place.bare };
    await gitIn(draft, ["update-ref", place.ref, commit], this.#settings, { env });
    renameSync(draft, place.root);
  }

  async #makeRepository(bare: string): Promise<void> {
    if (existsSync(join(bare, "HEAD"))) return;
    makePrivateFolder(this.#folder);
    makePrivateFolder(bare);
    // A second call finishes what a crash has cut off.
    await gitIn(bare, ["init", "--quiet", "--bare", "--object-format=sha1", "--template="], this.#settings, {
      env: { GIT_DIR: bare },
    });
  }

  #place(project: string, session: string): SnapshotPlace & { readonly bare: string } {
    const folder = this.#ofProject(project);
    const { path, snapshots } = namesOf(folder, session);
    const bare = `${folder}.git`;
    const index = join(bare, `index-${createHash("sha256").update(session).digest("hex").slice(0, 32)}`);
    return { session, root: path, ref: snapshots, index, bare };
  }

  #ofProject(project: string): string {
    return join(this.#folder, createHash("sha256").update(project).digest("hex").slice(0, 12));
  }
}
