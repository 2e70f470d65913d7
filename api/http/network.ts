/** The network that limits are counted for: an IPv4 address, or the /64 of an IPv6 address. */
import { normalizeIP } from '@fastify/rate-limit'

/** Addresses are the clients' choice: beyond this number all are forgotten. */
const MOST = 10_000
/** Characters of the longest IPv6 address without a zone. A proxy may forward anything as an address; what is longer is not kept. */
const LONGEST = 45

/** `compute`, which keeps its results: for a cheap request, computing costs as much as the rest. */
export function keptByAddress<Value extends object | string>(
  compute: (ip: string) => Value,
): (ip: string) => Value {
  const known = new Map<string, Value>()
  return (ip) => {
    const found = known.get(ip)
    if (found !== undefined) return found
    const value = compute(ip)
    if (ip.length > LONGEST) return value
    if (known.size >= MOST) known.clear()
    known.set(ip, value)
    return value
  }
}

/** An address to which a proxy has appended the port of the connection, for example `192.0.2.1:443` or `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]+)\](?::\d+)?)$/

/** With its port, each connection of a client would be an address of its own. */
function withoutPort(ip: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(ip) ?? []
  return ipv4 ?? ipv6 ?? ip
}

export const networkOf = keptByAddress((ip) => normalizeIP(withoutPort(ip)))
