/** Addresses of a deployment, read from Ignition's folder. */
import { existsSync, readFileSync } from 'node:fs'

export interface Deployment {
  readonly id: string
  /** Addresses of the exchange's contracts and libraries by name. */
  readonly contracts: Readonly<Record<string, string>>
  /** Addresses of markets by their id. */
  readonly markets: ReadonlyMap<number, string>
}

export const folderOf = (deploymentId: string): string => `ignition/deployments/${deploymentId}`

export function readDeployment(id: string): Deployment {
  const path = `${folderOf(id)}/deployed_addresses.json`
  if (!existsSync(path)) throw new Error(`there is no deployment "${id}" (${path} is missing)`)
  const addresses: Record<string, string> = JSON.parse(readFileSync(path, 'utf8'))
  const contracts: Record<string, string> = {}
  const markets = new Map<number, string>()
  for (const [future, address] of Object.entries(addresses)) {
    const [module = '', name = ''] = future.split('#')
    if (module === 'Exchange') contracts[name] = address
    if (name === 'IsolatedTrader') markets.set(Number(module.replace('Market', '')), address)
  }
  return { id, contracts, markets }
}

export function contractOf({ id, contracts }: Deployment, name: string): string {
  const address = contracts[name]
  if (address === undefined) throw new Error(`deployment "${id}" has no ${name}`)
  return address
}

export function traderOf({ id, markets }: Deployment, marketId: number): string {
  const address = markets.get(marketId)
  const known = [...markets.keys()].join(', ') || 'none'
  if (address === undefined)
    throw new Error(`deployment "${id}" has no market ${marketId} (markets: ${known})`)
  return address
}
