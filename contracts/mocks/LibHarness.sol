// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {ActionKind, ActionLib} from "../libraries/ActionLib.sol";
import {BackstopLib} from "../libraries/BackstopLib.sol";
import {BandLib} from "../libraries/BandLib.sol";
import {DeleverageLib} from "../libraries/DeleverageLib.sol";
import {FeeLib} from "../libraries/FeeLib.sol";
import {MarginLib} from "../libraries/MarginLib.sol";
import {OrderLib} from "../libraries/OrderLib.sol";
import {PositionLib} from "../libraries/PositionLib.sol";
import {SettlementCodec} from "../libraries/SettlementCodec.sol";
import {MarketMode, Parameters} from "../types/Market.sol";
import {Position} from "../types/Position.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {Inheritance, RiskTerms, Valuation} from "../types/Risk.sol";
import {OrderFill, PartTerms} from "../types/Settlement.sol";

/// @title Exposes the rules of settlement and risk, for parity tests with domain/
contract LibHarness {
    /// @dev Result of a fill besides the position.
    struct FillOutcome {
        int256 freeDelta;
        uint256 fee;
        bool feeCapped;
        bool dead;
    }

    function applyFill(Position memory position, OrderFill memory order, PartTerms memory terms)
        external
        pure
        returns (Position memory held, FillOutcome memory outcome, bool opened, uint256 word)
    {
        (RecordHead head, RecordBody body) = _pack(order);
        (opened, outcome.freeDelta, outcome.fee, outcome.feeCapped) =
            PositionLib.applyFill(position, head, body, terms);
        word = PositionLib.pack(position, terms.fundingIndex, order.maker);
        held = position;
    }

    function unpack(uint256 word, int256 fundingIndex) external pure returns (Position memory position) {
        PositionLib.unpack(word, fundingIndex, position);
    }

    function packPosition(Position memory position, int256 fundingIndex) external pure returns (uint256) {
        return PositionLib.pack(position, fundingIndex, address(0));
    }

    function addMargin(uint256 word, int256 moved, address account)
        external
        pure
        returns (uint256 changed, int256 folded)
    {
        return PositionLib.addMargin(word, moved, account);
    }

    function withLeverage(uint256 word, uint256 leverage) external pure returns (uint256) {
        return PositionLib.withLeverage(word, leverage);
    }

    function exposure(Position memory position, uint256 oracleStepX, uint256 step, bool binary)
        external
        pure
        returns (int256 equityX, uint256 notionalX)
    {
        return MarginLib.exposure(position, oracleStepX, step, binary);
    }

    function requireInitial(Position memory position, PartTerms memory terms) external pure {
        MarginLib.requireInitial(position, terms, address(0));
    }

    function merge(Position memory held, Position memory added) external pure returns (Position memory) {
        return BackstopLib.merge(held, added);
    }

    function inherit(
        Position memory held,
        Position memory position,
        RiskTerms memory terms,
        Valuation memory valuation,
        address bank
    ) external view returns (Position memory merged, Inheritance memory result) {
        return BackstopLib.inherit(held, position, terms, valuation, IMarginBank(bank));
    }

    function score(Position memory position, Valuation memory valuation)
        external
        pure
        returns (bool qualifies, uint256 value)
    {
        return DeleverageLib.score(position, valuation);
    }

    function closeAgainst(Position memory position, Position memory counterparty, uint256 asked)
        external
        pure
        returns (Position memory rest, Position memory other, uint256 steps, uint256 payout)
    {
        (steps, payout) = DeleverageLib.closeAgainst(position, counterparty, asked);
        return (position, counterparty, steps, payout);
    }

    function requireLiquidatable(Position memory position, PartTerms memory terms) external pure {
        MarginLib.requireLiquidatable(position, terms, address(0));
    }

    function feePerStep(bool binary, uint256 price, uint256 step, uint256 stepNotional, uint256 rate)
        external
        pure
        returns (uint256)
    {
        return FeeLib.perStep(binary, price, step, stepNotional, rate);
    }

    function band(uint256 oraclePrice, uint256 tick, Parameters memory parameters, bool binary)
        external
        pure
        returns (uint256 lowest, uint256 highest)
    {
        return BandLib.band(oraclePrice, tick, parameters, binary);
    }

    function recover(bytes32 orderDigest, uint256 yParity, bytes32 r, bytes32 s) external view returns (address) {
        return OrderLib.recover(orderDigest, yParity, r, s);
    }

    /// @param record As in a part.
    function requireValid(bytes calldata record, PartTerms memory terms) external pure {
        (RecordHead head, RecordBody body,) = OrderLib.read(_pointerOf(record));
        OrderLib.requireValid(head, body, terms);
    }

    function requireForced(bytes calldata record) external pure {
        (RecordHead head, RecordBody body,) = OrderLib.read(_pointerOf(record));
        OrderLib.requireForced(head, body);
    }

    /// @notice Digest and signer of a record, computed as in settlement.
    function signerOf(bytes calldata record, PartTerms memory terms) external view returns (bytes32 hash, address signer) {
        (RecordHead head, RecordBody body,) = OrderLib.read(_pointerOf(record));
        (bytes32 r, bytes32 s) = OrderLib.readSignature(_pointerOf(record));
        hash = OrderLib.digest(head, body, terms);
        signer = OrderLib.recover(hash, body.parity(), r, s);
    }

    function requireSigner(address keys, address maker, uint256 salt, address signer, uint256 asOf) external view {
        OrderLib.requireSigner(IAccountManager(keys), maker, salt, signer, asOf);
    }

    function _pointerOf(bytes calldata record) private pure returns (uint256 pointer) {
        assembly ("memory-safe") {
            pointer := record.offset
        }
    }

    /// @dev The words of a record. `flags` has salt, side and reduce-only.
    function _pack(OrderFill memory order) private pure returns (RecordHead, RecordBody) {
        uint256 head = (uint256(uint160(order.maker)) << 96) | (order.quantity << 48) | order.fill;
        uint256 body = (order.flags << 192) | (order.price << 152) | (order.trigger << 112) | (order.expiration << 72)
            | (order.taker << 24) | (order.leverage << 16) | (order.slot << 6) | (order.triggerCondition << 4)
            | ((order.v - 27) << 3) | (order.forced ? 4 : 0);
        return (RecordHead.wrap(head), RecordBody.wrap(body));
    }

    function encodeLog(
        bytes calldata part,
        OrderFill[] memory orders,
        FillOutcome[] memory outcomes,
        int256 fundingIndex
    ) external pure returns (bytes memory log) {
        uint256 end;
        (log, end) = SettlementCodec.startLog(part, orders.length, fundingIndex);
        for (uint256 i; i < orders.length; ++i) {
            (RecordHead head, RecordBody body) = _pack(orders[i]);
            FillOutcome memory done = outcomes[i];
            end = SettlementCodec.writeRecord(end, head, body, done.freeDelta, done.fee, done.feeCapped, done.dead);
        }
        SettlementCodec.finishLog(log, end);
    }

    function requireMode(MarketMode mode, ActionKind kind) external pure {
        ActionLib.requireMode(mode, kind);
    }
}
