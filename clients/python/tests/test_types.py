"""A client that is generated from /openapi.json reads rows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import urllib.request
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

import sluice_client as sluice

from .shop import KEY, Shop


def test_models_that_are_generated_from_the_document_hold_rows(shop: Shop, tmp_path: Path) -> None:
    pytest.importorskip("datamodel_code_generator")
    lines = list(sluice.rows(f"{shop.keyed}/orders", key=KEY).lines())
    request = urllib.request.Request(f"{shop.keyed}/openapi.json", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request) as answer:
        (tmp_path / "openapi.json").write_bytes(answer.read())
    generate = [sys.executable, "-m", "datamodel_code_generator", "--input", "openapi.json", "--output", "models.py"]
    options = ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"]
    subprocess.run([*generate, *options], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    found = importlib.util.spec_from_file_location("models", tmp_path / "models.py")
    assert found is not None and found.loader is not None
    models = importlib.util.module_from_spec(found)
    sys.modules["models"] = models
    found.loader.exec_module(models)
    rows = [models.RowOrders.model_validate_json(line) for line in lines]
    assert len(rows) == len(shop.rows)
    row, stored = rows[7], shop.rows[7]
    assert (row.id, row.status) == (str(stored["_id"]), stored["status"])
    assert row.createdAt == stored["createdAt"] and isinstance(row.createdAt, datetime)
    assert Decimal(str(row.total)) == stored["total"].to_decimal()
    assert row.customer.country == stored["customer"]["country"]
    assert row.lines[0].sku == stored["lines"][0]["sku"]
    with pytest.raises(ValueError, match="status"):
        models.RowOrders.model_validate({"id": "0" * 24, "status": 7})
