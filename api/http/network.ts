/** The network that limits are counted for: an IPv4 address, or the /64 of an IPv6 address. */
import { normalizeIP } from '@fastify/rate-limit'

/** Addresses are the clients' choice: beyond this number all are forgotten. */
const MOST = 10_000
/** Characters of the longest IPv6 address without a zone. A proxy may forward anything as an address; what is longer is not kept. */
export const LONGEST_ADDRESS = 45
const networks = new Map<string, string>()

/** Parsing an IPv6 address costs as much as the rest of a cheap request, so that results are kept. */
export function networkOf(ip: string): string {
  if (!ip.includes(':') || ip.length > LONGEST_ADDRESS) return normalizeIP(ip)
  const known = networks.get(ip)
  if (known !== undefined) return known
  const network = normalizeIP(ip)
  if (networks.size >= MOST) networks.clear()
  networks.set(ip, network)
  return network
}
