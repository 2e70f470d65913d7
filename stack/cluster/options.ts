/** Flags of `clearbatch cluster`. */
import { resolve } from 'node:path'
import { type Arguments, text, toggle, wholeNumber, withDefault } from '../../service/command-line.ts'
import type { Adapt } from '../process-spec.ts'

export interface ClusterOptions {
  readonly dir: string
  /** Where clients reach the exchange, at the address of the host `edge`. */
  readonly port: number
  /** Delete the saved state first. */
  readonly fresh: boolean
  readonly bots: boolean
  /** Whether the apis serve the page. The default is no. */
  readonly page?: boolean
  /** Whether a backstop inherits positions. The default is yes. */
  readonly backstop?: boolean
  /** Without network namespaces, also where the kernel allows them. */
  readonly loopback?: boolean
  /** Changes a process before it starts. */
  readonly adapt?: Adapt
}

const DIR = '.clearbatch/cluster'

export const DIR_FLAG = withDefault(text('<path>', 'folder of the state'), DIR)

export const CLUSTER_FLAGS = {
  dir: DIR_FLAG,
  port: withDefault(wholeNumber('public port of the proxy', { least: 1, most: 65_535 }), 8080),
  fresh: toggle('delete the saved state first'),
  loopback: toggle('hosts are addresses of the loopback interface instead of network namespaces'),
  'no-bots': toggle('start without demo traders'),
} as const

export type ClusterValues = Omit<Arguments<typeof CLUSTER_FLAGS>, 'positionals'>

export const clusterOptionsOf = ({ dir, port, fresh, loopback, ...more }: ClusterValues): ClusterOptions => ({
  dir: resolve(dir),
  port,
  fresh,
  loopback,
  bots: !more['no-bots'],
  page: true,
})
