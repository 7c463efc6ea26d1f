module examples

go 1.22.0
