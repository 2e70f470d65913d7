/** Starts the local chain: anvil with the settings of MegaETH. */
import { createRequire } from 'node:module'
import { LOOPBACK } from '../service/environment.ts'
import { startChild } from './child.ts'
import { freePort } from './ports.ts'

export interface AnvilOptions {
  readonly port?: number
  /** Address at which it listens; the loopback interface by default. */
  readonly host?: string
  /** Program and arguments that start it, such as in another network namespace. */
  readonly launcher?: readonly string[]
  readonly chainId?: number
  /** Seconds between blocks. Without it, a block is mined only per transaction. */
  readonly blockTime?: number
  /** With a block time: each transaction is also mined at once, in a block of its own. */
  readonly mixedMining?: boolean
  /** The chain is loaded from this file at start, and saved to it every 5 s and at the end. */
  readonly stateFile?: string
  readonly logFile?: string
}

export interface Anvil {
  readonly url: string
  /** The process group, for signals. */
  readonly group: number
  /** Resolves when the process has ended for any reason. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const SAVE_EVERY_S = 5

/** Blocks whose state can be read. By default anvil writes the states of older blocks to files of its own, which it leaves behind when it is killed. */
const STATES = 128

export async function startAnvil(options: AnvilOptions = {}): Promise<Anvil> {
  const port = options.port ?? (await freePort())
  const url = `http://${options.host ?? LOOPBACK}:${port}`
  const words = [...(options.launcher ?? []), anvilBinary(), ...anvilArguments(options, port)]
  const [command = '', ...args] = words
  const child = await startChild({
    command,
    args,
    logFile: options.logFile ?? '/dev/null',
    ready: () => isResponding(url),
  })
  return { url, group: child.group, exited: child.exited, stop: child.stop }
}

/** As on MegaETH: Prague rules, a base fee of 0.001 gwei, and a gas limit above the largest batch. */
function anvilArguments(
  { chainId = 6343, host = LOOPBACK, blockTime, mixedMining, stateFile }: AnvilOptions,
  port: number,
) {
  return [
    ...['--quiet', '--host', host, '--port', `${port}`, '--chain-id', `${chainId}`, '--hardfork', 'prague'],
    ...['--base-fee', '1000000', '--gas-limit', '2000000000', '--no-request-size-limit'],
    ...['--prune-history', `${STATES}`],
    ...(blockTime === undefined ? [] : ['--block-time', `${blockTime}`]),
    ...(mixedMining ? ['--mixed-mining'] : []),
    ...(stateFile === undefined ? [] : ['--state', stateFile, '--state-interval', `${SAVE_EVERY_S}`]),
  ]
}

/** The binary itself. The package's wrapper script would add a process between the stack and anvil. */
export function anvilBinary(): string {
  const wrapper = createRequire(import.meta.resolve('@foundry-rs/anvil/package.json'))
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  return wrapper.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`)
}

async function isResponding(url: string): Promise<boolean> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] })
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return response.ok
}
