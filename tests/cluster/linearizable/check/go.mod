module shunt/tests/linearizable

go 1.19
