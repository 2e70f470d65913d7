/** The networks of a cluster: one namespace per host, all on one bridge. A janitor removes them, also after a kill of the cluster. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { addressOf, bridgeOf, gatewayOf, HOSTS, type Layout, namespaceOf } from './layout.ts'

const run = promisify(execFile)

/** A shell script that creates bridge and namespaces. */
export function creationScript(layout: Layout): string {
  const bridge = bridgeOf(layout)
  return [
    'set -e',
    `ip link add ${bridge} type bridge`,
    `ip addr add ${gatewayOf(layout)}/24 dev ${bridge}`,
    `ip link set ${bridge} up`,
    ...HOSTS.flatMap((host, at) => {
      const namespace = namespaceOf(layout, host)
      const link = `${bridge}.${at}`
      return [
        `ip netns add ${namespace}`,
        `ip link add ${link} type veth peer name eth0 netns ${namespace}`,
        `ip link set ${link} master ${bridge} up`,
        `ip -n ${namespace} addr add ${addressOf(layout, host)}/24 dev eth0`,
        `ip -n ${namespace} link set eth0 up`,
        `ip -n ${namespace} link set lo up`,
      ]
    }),
  ].join('\n')
}

/** Removes what `creationScript` creates, also the half of it. Processes that still run in a namespace are killed. */
export function removalScript(layout: Layout): string {
  const namespaces = HOSTS.map((host) => namespaceOf(layout, host)).join(' ')
  return [
    `for namespace in ${namespaces}; do`,
    '  [ -e "/run/netns/$namespace" ] || continue',
    '  for pid in $(ip netns pids "$namespace"); do kill -KILL "$pid"; done',
    '  ip netns del "$namespace"',
    'done',
    `ip link del ${bridgeOf(layout)}`,
  ].join('\n')
}

const END_S = 40
/** After this time, a Postgres server without its Patroni is ended. */
const ORPHAN_S = 5

const NAMESPACE_IS_USED = ['    [ -z "$(ip netns pids "$namespace" 2>/dev/null)" ] || alive=yes']

/**
 * Waits until the cluster's process has ended, then until all servers have. Postgres has a session of its own, maybe
 * without Patroni: it is ended by the id in its data directory.
 */
export function janitorScript(layout: Layout, postgresDirs: readonly string[]): string {
  const isNamespaced = layout.network === 'namespaces'
  const namespaces = HOSTS.map((host) => namespaceOf(layout, host)).join(' ')
  return [
    'read -r _',
    'second=0',
    `while [ "$second" -lt ${END_S} ]; do`,
    '  alive=',
    `  for dir in ${postgresDirs.map((dir) => `'${dir}'`).join(' ')}; do`,
    '    pid=$(head -n 1 "$dir/postmaster.pid" 2>/dev/null) || continue',
    '    grep -q -F "$dir" "/proc/$pid/cmdline" 2>/dev/null || continue',
    '    alive=yes',
    `    [ "$second" -lt ${ORPHAN_S} ] || kill -INT "$pid"`,
    '  done',
    ...(isNamespaced ? [`  for namespace in ${namespaces}; do`, ...NAMESPACE_IS_USED, '  done'] : []),
    '  [ -n "$alive" ] || break',
    '  sleep 1',
    '  second=$((second + 1))',
    'done',
    ...(isNamespaced ? [removalScript(layout)] : []),
  ].join('\n')
}

/** Null if the networks exist; otherwise why this machine has none. */
export async function createNetwork(layout: Layout): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'only root may create them'
  await run('/bin/sh', ['-c', removalScript(layout)]).catch(() => {})
  try {
    await run('/bin/sh', ['-c', creationScript(layout)])
    return null
  } catch (error) {
    await run('/bin/sh', ['-c', removalScript(layout)]).catch(() => {})
    const { stderr = '', message } = error as Error & { stderr?: string }
    return (stderr.trim() || message).split('\n')[0] as string
  }
}

/** Third parts of addresses that no network of this machine has; in the order of preference. */
export async function freeIds(): Promise<readonly number[]> {
  const { stdout } = await run('ip', ['-o', 'addr']).catch(() => ({ stdout: '' }))
  const taken = new Set([...stdout.matchAll(/inet 10\.201\.(\d+)\./g)].map(([, id]) => Number(id)))
  return Array.from({ length: 250 }, (_, at) => at + 1).filter((id) => !taken.has(id))
}

/** Removes the networks once the returned function is called, or this process has ended. */
export function startJanitor(layout: Layout, postgresDirs: readonly string[]): () => Promise<void> {
  const janitor = spawn('/bin/sh', ['-c', janitorScript(layout, postgresDirs)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(janitor, 'exit')
  janitor.stdin.on('error', () => {})
  janitor.unref()
  return async () => {
    janitor.ref()
    janitor.stdin.end()
    await ended
  }
}
