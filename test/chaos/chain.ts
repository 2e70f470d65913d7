/** Faults of the chain itself, which are the same on every exchange. */
import type { JsonRpcProvider } from 'ethers'
import type { Service } from '../../stack/services.ts'
import { replaceBlocks } from '../support/chain-faults.ts'
import type { Injected, Skipped } from './exchange.ts'
import type { PlannedFault } from './plan.ts'
import { until } from './recovery.ts'

const DEEPEST = 8
const LONGEST_STEP_S = 5

export class ChainFaults {
  readonly #chain: Service
  readonly #provider: JsonRpcProvider
  /** Forks keep the blocks up to this one, which have the deposits. */
  readonly #kept: number

  constructor(chain: Service, provider: JsonRpcProvider, kept: number) {
    this.#chain = chain
    this.#provider = provider
    this.#kept = kept
  }

  async inject({ fault, size }: PlannedFault): Promise<Injected | Skipped> {
    const base = { on: 'chain', hasTwin: false, fails: [] }
    const heal = () => this.#answers()
    switch (fault) {
      case 'kill':
        this.#chain.signal('SIGKILL')
        return { ...base, heal }
      case 'stop':
        this.#chain.signal('SIGSTOP')
        return { ...base, heal: async () => this.#chain.signal('SIGCONT') }
      case 'restart':
        await this.#chain.restart()
        return { ...base, heal }
      case 'no blocks':
        await this.#provider.send('evm_setAutomine', [false])
        await this.#provider.send('evm_setIntervalMining', [0])
        return {
          ...base,
          // Only a start sets both ways of mining. Transactions that are not mined are lost.
          heal: async () => {
            await this.#chain.restart()
            await heal()
          },
        }
      case 'fork': {
        const head = await this.#provider.getBlockNumber()
        const depth = Math.min(1 + (size % DEEPEST), head - this.#kept)
        if (depth > 0) await replaceBlocks(this.#provider, depth)
        return { ...base, on: `chain (${depth} blocks)`, heal }
      }
      case 'clock step': {
        // Time stamps of blocks cannot step back: the chain waits until the clock has caught up.
        const seconds = 1 + (size % LONGEST_STEP_S)
        await this.#provider.send('evm_increaseTime', [seconds])
        return {
          ...base,
          on: `chain (${seconds} s)`,
          heal: async () => {
            await this.#provider.send('evm_setTime', [Date.now()])
          },
        }
      }
      default:
        throw new Error(`the chain has no fault ${fault}`)
    }
  }

  #answers(): Promise<void> {
    return until('the chain answers', async () => (await this.#provider.getBlockNumber()) >= 0)
  }
}
