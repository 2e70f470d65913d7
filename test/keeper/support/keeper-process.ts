/** The keeper as a process of its own, as it runs in production. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '../../../stack/ports.ts'
import { PATIENCE } from '../../support/patience.ts'
import { loginOf } from '../../support/postgres.ts'
import { type ChainFixture, faucetKey, laneKey } from './chain-fixture.ts'

export class KeeperProcess {
  readonly url: string
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown[]>
  #output = ''

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
    this.#ended = once(child, 'exit')
    child.stdout?.on('data', (data) => {
      this.#output += data
    })
    child.stderr?.on('data', (data) => {
      this.#output += data
    })
  }

  static async start(fixture: ChainFixture, env: Record<string, string> = {}): Promise<KeeperProcess> {
    const port = await freePort()
    const child = spawn(process.execPath, ['keeper/main.ts'], {
      env: {
        ...process.env,
        DATABASE_URL: await loginOf(fixture.url, 'keeper'),
        REDIS_URL: '',
        RPC_URL: fixture.chainSide.anvil.url,
        CHAIN_ID: '6343',
        INTERNAL_PORT: `${port}`,
        LOG_LEVEL: 'warn',
        ADDRESS_USDM: fixture.chainSide.shared.usdm,
        ADDRESS_MARGIN_BANK: fixture.chainSide.shared.marginBank,
        RELAYER_KEYS: JSON.stringify({ m1: laneKey, faucet: faucetKey }),
        LEASE_MS: '900',
        CONFIRMATIONS: '0',
        ...(await fixture.serve()),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return new KeeperProcess(child, `http://127.0.0.1:${port}`)
  }

  get output(): string {
    return this.#output
  }

  /** Code and signal of its end. */
  async ended(): Promise<[number | null, NodeJS.Signals | null]> {
    return (await this.#ended) as [number | null, NodeJS.Signals | null]
  }

  async kill(signal: NodeJS.Signals): Promise<[number | null, NodeJS.Signals | null]> {
    this.#child.kill(signal)
    return this.ended()
  }

  async ready(): Promise<void> {
    await until(
      async () => (await fetch(`${this.url}/health/ready`).catch(() => null))?.ok === true,
      () => this.#output,
    )
  }
}

/** Waits until `is` answers yes. `limitMs` is for a quiet machine. */
export async function until(
  is: () => Promise<boolean>,
  hint: () => string = () => '',
  limitMs = 20_000,
): Promise<void> {
  const patientMs = limitMs * PATIENCE
  const deadline = Date.now() + patientMs
  while (!(await is())) {
    if (Date.now() > deadline) throw new Error(`not within ${patientMs} ms. ${hint()}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** The environment of a process whose system clock is wrong. Its monotonic clock is right. */
export function systemClockWrongBy(ms: number): Record<string, string> {
  const source = `const now = Date.now; Date.now = () => now() + ${ms}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}` }
}
