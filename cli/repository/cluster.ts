/** `cluster`: runs an exchange on several hosts of this machine until Ctrl-C. `cluster status`: the state of all its services. */
import { relative, resolve } from 'node:path'
import { startCluster } from '../../stack/cluster/cluster.ts'
import { type ClusterValues, clusterOptionsOf } from '../../stack/cluster/options.ts'
import { storedState } from '../../stack/cluster/state.ts'
import { clusterStatus, type ServiceStatus } from '../../stack/cluster/status.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { rendered } from '../print.ts'
import { untilStopped } from './until-stopped.ts'

/** Progress is for a person: a program that reads `--json` gets only the table of services. */
const reporter =
  ({ terminal, format }: Context) =>
  (line: string): void =>
    format === 'text' ? terminal.out(line) : terminal.note(line)

export async function cluster(context: Context, values: ClusterValues): Promise<undefined> {
  const options = clusterOptionsOf(values)
  const report = reporter(context)
  report(`Starting a cluster in ${options.dir} ...`)
  const began = Date.now()
  const running = await startCluster(options, (line) => report(`[${new Date().toISOString()}] ${line}`))
  const state = storedState(options.dir)
  if (state !== null) context.terminal.out(rendered(await clusterStatus(state), context.format))
  const nearby = relative(process.cwd(), options.dir)
  const file = `${nearby.startsWith('..') ? options.dir : nearby}/stack.json`
  report(
    `\n  Page        ${running.file.base_url}\n  Accounts    ${running.file.accounts.length} funded accounts, keys in ${file}\n` +
      `  Trade       npm run cb -- auth login --stack ${file}\n\n` +
      `Ready after ${((Date.now() - began) / 1000).toFixed(1)} s. Ctrl-C stops all processes. The next start resumes from the saved state; ` +
      '--fresh resets it.',
  )
  await untilStopped(context)
  report('Stopping ...')
  await running.stop()
  report('Stopped.')
  return undefined
}

/** Fails if a service is down, after the table of all. */
export async function status(
  context: Context,
  { dir }: { readonly dir: string },
): Promise<readonly ServiceStatus[]> {
  const path = resolve(dir)
  const state = storedState(path)
  if (state === null)
    throw new CommandError(
      `${path} has no cluster: start one with \`npm run cb -- cluster --dir ${dir}\``,
      EXIT.usage,
    )
  const services = await clusterStatus(state)
  const down = services.filter((each) => each.state === 'down')
  if (down.length === 0) return services
  if (context.format === 'text') context.terminal.out(rendered(services, context.format))
  throw new CommandError(
    `${down.length} of ${services.length} services are down: ${down.map(({ host, service }) => `${host} ${service}`).join(', ')}`,
    EXIT.unavailable,
    { services },
  )
}
