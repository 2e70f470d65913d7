/** Refuses a node of another chain than `CHAIN_ID`: it would reject every transaction, or execute it where the exchange is not. */
import { ConfigError } from '../../service/environment.ts'
import type { Logger } from '../../service/logger.ts'

export interface ChainCheckPorts {
  readonly chainId: number
  /** Rejects while the node does not respond. */
  readonly readChainId: () => Promise<number>
  readonly logger: Pick<Logger, 'warn'>
  readonly retryMs?: number
}

export interface ChainCheck {
  /** Rejects with a ConfigError once the node has named another chain. Never resolves. */
  readonly failed: Promise<never>
  stop(): void
}

const RETRY_MS = 2_000

/**
 * Resolves after the first attempt, which throws a ConfigError for another chain. A keeper starts without a node too: the check is then repeated
 * until the node responds.
 */
export async function startChainCheck(ports: ChainCheckPorts): Promise<ChainCheck> {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let fail: (error: unknown) => void = () => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  // A process that stops before the failure has no listener.
  failed.catch(() => {})
  const repeat = (): void => {
    if (isStopped) return
    timer = setTimeout(() => {
      isSameChain(ports).then((isKnown) => isKnown || repeat(), fail)
    }, ports.retryMs ?? RETRY_MS)
  }
  if (!(await isSameChain(ports))) repeat()
  return {
    failed,
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

/** False while the node does not respond. */
async function isSameChain({ chainId, readChainId, logger }: ChainCheckPorts): Promise<boolean> {
  const found = await readChainId().catch((err: unknown) => {
    logger.warn({ err }, "reading the node's chain id failed; will retry")
    return null
  })
  if (found === null || found === chainId) return found !== null
  throw new ConfigError(
    `CHAIN_ID is "${chainId}": the node of RPC_URL is on chain ${found}; expected a node of the same chain`,
  )
}
