/** The exchange's processes on the hosts of a cluster: the variables of each are those of production. */
import { join } from 'node:path'
import { writePrivate } from '../data-dir.ts'
import type { DatabaseUrls } from '../database-logins.ts'
import { feedIdOf, finalFeedIdOf, sessionFeedIdOf } from '../deploy.ts'
import type { Deployment } from '../deployment.ts'
import type { EngineKeyFiles } from '../engine.ts'
import { type Environment, environmentOf } from '../environment.ts'
import type { Keys } from '../keys.ts'
import type { SignerEntry } from '../price-config.ts'
import type { ProcessSpec } from '../process-spec.ts'
import { SEED_MARKETS } from '../seed-markets.ts'
import { serviceTlsVariables, tlsVariables } from './certificates.ts'
import { redisUrlOf, type Secrets } from './configuration.ts'
import {
  APP_HOSTS,
  type AppHost,
  addressOf,
  endpoint,
  type HostName,
  type Layout,
  launcherOf,
  ORACLE_HOSTS,
  type OracleHost,
  PORTS,
  publicUrl,
} from './layout.ts'

export interface ProcessesInput {
  /** The folder of the cluster, which has the certificates. */
  readonly dir: string
  readonly layout: Layout
  readonly secrets: Secrets
  readonly keys: Keys
  readonly deployment: Deployment
  /** Logins by the proxy of the host `app1`. */
  readonly databaseUrls: DatabaseUrls
  readonly engineKeys: EngineKeyFiles
  readonly pricesFile: string
  readonly issuerKeysFile: string
  readonly pageDir: string | null
}

export const membersOf = (layout: Layout): readonly string[] =>
  APP_HOSTS.map((host) => endpoint(layout, host, 'engine'))

/** The internal listeners of all processes on all hosts. The backstop runs on one app host. */
const listenersOf = (layout: Layout): readonly string[] => {
  const ofApp = ['engineHealth', 'keeperHealth', 'indexerHealth', 'apiHealth'] as const
  return [
    ...APP_HOSTS.flatMap((host) => ofApp.map((name) => endpoint(layout, host, name))),
    ...ORACLE_HOSTS.map((host) => endpoint(layout, host, 'signerHealth')),
  ].map((at) => `http://${at}`)
}

export const issuerUrlOf = (layout: Layout): string => `http://${endpoint(layout, 'edge', 'issuer')}`

/** The process on its host; its log has the name of both. */
export const onHost = (layout: Layout, host: HostName, spec: ProcessSpec): ProcessSpec => ({
  ...spec,
  name: `${host}-${spec.name}`,
  launcher: launcherOf(layout, host),
})

/** A host reaches the primary by its own proxy. */
function urlsOn({ layout, databaseUrls }: ProcessesInput, host: AppHost): DatabaseUrls {
  const moved = Object.entries(databaseUrls).map(([name, text]) => {
    const url = new URL(text)
    url.host = endpoint(layout, host, 'database')
    return [name, url.href]
  })
  return Object.fromEntries(moved) as unknown as DatabaseUrls
}

export function environmentOn(input: ProcessesInput, host: AppHost): Environment {
  const { dir, layout, secrets, engineKeys, ...more } = input
  const databaseUrls = urlsOn(input, host)
  return environmentOf({
    ...more,
    databaseUrls,
    rpcUrl: `http://${endpoint(layout, 'chain', 'chain')}`,
    ports: {
      rest: PORTS.api,
      issuer: PORTS.issuer,
      internal: {
        api: PORTS.apiHealth,
        keeper: PORTS.keeperHealth,
        indexer: PORTS.indexerHealth,
        backstop: PORTS.backstopHealth,
        engine: PORTS.engineHealth,
      },
    },
    engine: {
      listen: endpoint(layout, host, 'engine'),
      members: membersOf(layout),
      keys: engineKeys,
      databaseUrl: databaseUrls.engine,
    },
    host: addressOf(layout, host),
    tls: { every: tlsVariables(dir, host), service: serviceTlsVariables(dir, host) },
    proxyUrl: publicUrl(layout),
    issuerUrl: issuerUrlOf(layout),
    redisUrl: redisUrlOf(layout, secrets),
    signerSecret: secrets.signers,
    targets: listenersOf(layout),
  })
}

/** The signers as the price configuration of the keepers names them. */
export const signerEntries = (layout: Layout, keys: Keys): readonly SignerEntry[] =>
  ORACLE_HOSTS.map((host, at) => ({
    name: host,
    url: `https://${endpoint(layout, host, 'signer')}`,
    address: keys.oracleSigner(at).address,
  }))

/** The feeds that each signer signs, with the limits of the markets' contracts. */
export const signableFeeds = (): object => ({
  feeds: SEED_MARKETS.flatMap(({ plan: { marketId, kind, fundingSession } }) => [
    { feed_id: feedIdOf(marketId), ...(kind === 'binary_future' && { kind: 'probability' }) },
    ...(fundingSession ? [{ feed_id: sessionFeedIdOf(marketId), kind: 'session' }] : []),
    ...(kind === 'perpetual' ? [] : [{ feed_id: finalFeedIdOf(marketId), kind: 'final' }]),
  ]),
})

/** Each signer has a key file and a feeds file of its own in the folder of its host. */
export function signersOf(
  { dir, layout, secrets, keys, deployment }: ProcessesInput,
  folderOf: (host: HostName) => string,
): (readonly [OracleHost, ProcessSpec])[] {
  return ORACLE_HOSTS.map((host, at) => {
    const feedsFile = join(folderOf(host), 'feeds.json')
    writePrivate(feedsFile, signableFeeds())
    const spec: ProcessSpec = {
      name: 'signer',
      args: ['signer/main.ts'],
      env: {
        ...tlsVariables(dir, host),
        SIGNER_KEY: keys.oracleSigner(at).privateKey,
        SIGNER_SECRET: secrets.signers,
        SIGNER_FEEDS_FILE: feedsFile,
        CHAIN_ID: `${deployment.chain_id}`,
        ADDRESS_ORACLE: deployment.contracts.oracle,
        HOST: addressOf(layout, host),
        PORT: `${PORTS.signer}`,
        INTERNAL_HOST: addressOf(layout, host),
        INTERNAL_PORT: `${PORTS.signerHealth}`,
      },
      readyUrl: `https://${endpoint(layout, host, 'signerHealth')}/health/ready`,
    }
    return [host, spec]
  })
}
