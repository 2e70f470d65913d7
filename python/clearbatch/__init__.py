"""Trade on Clearbatch: REST, live feed and order signing, synchronous (`Client`) and for asyncio (`AsyncClient`)."""

from .async_client import AsyncClient
from .client import Client
from .decimals import Amount, Side, from_e18, from_raw, round_price, round_quantity, to_e18
from .errors import ClearbatchError, Outcome
from .orders import NewOrder, OrderType, SaltSequence, SignedAdjustment, SignedOrder, Target, or_raise
from .sequence import LocalBook
from .signing import PrivateKeySigner, Signer

__version__ = "0.1.0"

__all__ = [
    "Amount",
    "AsyncClient",
    "ClearbatchError",
    "Client",
    "LocalBook",
    "NewOrder",
    "OrderType",
    "Outcome",
    "PrivateKeySigner",
    "SaltSequence",
    "Side",
    "SignedAdjustment",
    "SignedOrder",
    "Signer",
    "Target",
    "from_e18",
    "from_raw",
    "or_raise",
    "round_price",
    "round_quantity",
    "to_e18",
]
