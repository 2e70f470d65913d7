/** Runs `npx hardhat` tasks as from the command line and captures their output. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHardhatRuntimeEnvironment } from 'hardhat/hre'
import type { EthereumProvider } from 'hardhat/types/providers'
import config from '../../../hardhat.config.ts'

export type HardhatConfig = typeof config

export interface TaskRun {
  /** Name of a network in the configuration. */
  readonly network: string
  readonly config?: HardhatConfig
}

/** Output of the task. Throws the task's error. */
export async function runTask(
  run: TaskRun,
  name: string | string[],
  given: Record<string, unknown>,
): Promise<string> {
  const hre = await createHardhatRuntimeEnvironment(run.config ?? config, { network: run.network })
  const lines: string[] = []
  const { log } = console
  console.log = (...words: unknown[]) => void lines.push(words.join(' '))
  try {
    await hre.tasks.getTask(name).run(given)
  } finally {
    console.log = log
  }
  return lines.join('\n')
}

/** A configuration whose network `served` is the node at `url`, with the node's own accounts. */
export const servedAt = (url: string): HardhatConfig =>
  ({ ...config, networks: { ...config.networks, served: { type: 'http', url } } }) as HardhatConfig

export interface ServedChain {
  readonly url: string
  stop(): Promise<void>
}

/** Serves the in-process chain of the tests as an HTTP node. */
export async function serveChain(provider: EthereumProvider): Promise<ServedChain> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString())
    const answer = await provider.request({ method, params }).then(
      (result) => ({ result }),
      ({ code, message, data }) => ({ error: { code: code ?? -32_000, message, data } }),
    )
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
